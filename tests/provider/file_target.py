"""A target whose tables are folders of numbered commits, each a control record; a commit creates the next number.

It fulfils the contract of a target table as far as the worker needs it: one commit per version, a fence that is
conditional on the version read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Source, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import NONE, Specials
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.target import EarlierVersion, TargetState


class FileTarget:
    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        self.store = LocalStore(target.location)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return []

    def locate(self, target_table: str) -> str:
        return self.store.url(target_table)

    def column_types(self, schema: TableSchema) -> Sequence[str]:
        return [str(column.type) for column in schema.columns]

    def restriction(self, column: Column, in_key: bool) -> None:
        return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def state(self, table: str, target_table: str) -> TargetState:
        commits = self.store.names(target_table)
        if not commits:
            return TargetState(exists=False)
        content = json.loads(self.store.read(f"{target_table}/{commits[-1]}"))
        control = from_plain(ControlRecord, content)
        return TargetState(exists=True, control=control, version=len(commits) - 1, token=control.token)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return {}

    def existing(self, target_tables: Collection[str]) -> Collection[str]:
        return set(self.store.names("")) & set(target_tables)

    def row_count(self, target_table: str, state: TargetState) -> int | None:
        """There are no rows."""
        return None

    def oldest_token(self, table: str, target_table: str) -> int:
        """Every existing commit can be restored."""
        oldest = json.loads(self.store.read(f"{target_table}/{self.store.names(target_table)[0]}"))
        return from_plain(ControlRecord, oldest).token

    def version_at_or_before(self, table: str, target_table: str, window: int) -> EarlierVersion | None:
        records = [self.control_at(table, target_table, v) for v in range(len(self.store.names(target_table)))]
        fit = [EarlierVersion(v, record) for v, record in enumerate(records) if record.window <= window]
        return max(fit, key=lambda past: (past.control.window, -past.version), default=None)

    def control_at(self, table: str, target_table: str, version: int) -> ControlRecord:
        return from_plain(ControlRecord, json.loads(self.store.read(f"{target_table}/{version:06d}.json")))

    def restore_version(self, target_table: str, expected: TargetState, version: int) -> None:
        """There are no data, only records."""

    def publish_cut(self, cut: Cut) -> None:
        self.store.write("_cuts.json", json.dumps(to_plain(cut)).encode())

    def commit(self, target_table: str, version: int, record: ControlRecord) -> bool:
        return self.store.create(f"{target_table}/{version:06d}.json", json.dumps(to_plain(record)).encode())

    def fence(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        assert expected.version is not None and expected.token is not None
        if record.token <= expected.token or not self.commit(target_table, expected.version + 1, record):
            raise Fenced.of("TGT009", f"{target_table} has changed", where=target_table)
        return record

    def release(self, table: str, target_table: str, identity: str | None = None) -> None:
        """The records are the table."""

    def drop(self, target_table: str, identity: str) -> None:
        self.store.delete(target_table)

    def withdraw_cut(self) -> None:
        self.store.delete("_cuts.json")

    def take_over(self, target_table: str, expected: TargetState, record: ControlRecord) -> ControlRecord:
        return self.fence(target_table, expected, record)


class SilentSource:
    """A source that the operator of a Spark step creates and never calls."""

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.connection = connection
