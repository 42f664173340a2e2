"""The common part of the targets that keep no earlier versions of their tables."""

from __future__ import annotations

from abc import ABC, abstractmethod

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState


class UnversionedTarget(ABC):
    log: ChangeLog

    @abstractmethod
    def locate(self, target_table: str) -> str: ...

    @abstractmethod
    def state(self, table: str, target_table: str) -> TargetState: ...

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """From the counts of our own commits: rows that other writers add do not count."""
        return state.control.rows if state.control else None

    def oldest_token(self, table: str, target_table: str) -> int:
        """The control row contains the whole record, so the log's older records are not needed."""
        return self.state(table, target_table).token or 0

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        return None

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord | None:
        return None

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        where, do = self.locate(target_table), "resync the table: airflow cdc resync"
        raise Blocked.of("TGT024", "a database keeps no earlier versions", where, f"version {version}", do=do)
