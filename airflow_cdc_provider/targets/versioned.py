"""The common part of the targets whose tables have versions: Delta and Iceberg."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import NONE, Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.fencing import claim_fence, fence_not_committed, has_commit
from airflow_cdc_provider.targets.restrictions import Restriction
from airflow_cdc_provider.targets.sparksql.types import column_type
from airflow_cdc_provider.targets.target import TargetState

SHARED_TRIES = 10
"""Of a commit to a table in which other copies commit, too."""


class VersionedTarget(ABC):
    log: ChangeLog

    @abstractmethod
    def locate(self, target_table: str) -> str: ...

    @abstractmethod
    def state(self, table: str, target_table: str) -> TargetState: ...

    @abstractmethod
    def unchanged(self, target_table: str, expected: TargetState, table: str) -> AbstractContextManager[Any]:
        """The open table. Raises Fenced if it is not in state ``expected``; errors of the library in the block become
        TargetUnavailable."""

    @abstractmethod
    def append_empty(self, opened: Any, record: ControlRecord) -> None:
        """Commit ``record`` without data on top of the version that was opened."""

    def column_types(self, schema: TableSchema) -> Sequence[str]:
        """As Spark names them."""
        return [column_type(column.type) for column in schema.columns]

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        return self.commit_empty(target_table, expected, record, self.append_empty)

    def commit_empty(
        self,
        target_table: str,
        expected: TargetState,
        record: ControlRecord,
        commit: Callable[[Any, ControlRecord], None],
    ) -> ControlRecord:
        """``commit``: commits ``record`` without data on top of the open table, or raises Blocked. If its response is
        lost, the table is read again: the commit is ours if the nonce is."""
        record = claim_fence(self.log, record, expected)
        for _ in range(SHARED_TRIES if expected.shared else 2):
            with self.unchanged(target_table, expected, record.table) as opened:
                try:
                    failpoint("fence.before")
                    commit(opened, record)
                    failpoint("fence.after")
                except Blocked:
                    raise
                except Exception:  # after any error of the library, only the table shows whether the commit succeeded
                    if has_commit(self.state(record.table, target_table), record):
                        return record
                else:
                    return record
        raise fence_not_committed(self.locate(target_table))

    def take_over(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        """The tokens of this replicator begin where those of the other one end."""
        own = self.state(record.table, target_table)
        return self.fence(target_table, replace(expected, token=own.token), record)

    def logged(self, table: str, record: ControlRecord) -> ControlRecord:
        """The record as the change log has it, if the log still has it."""
        return self.log.control(table, record.token) or record
