"""SQL Server as a source connector."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.source import Copy, KeepsNoState, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CatalogTable, read_sizes, read_tables
from airflow_cdc_provider.connectors.sources.sqlserver.check import find_problems, never_run, refused_tables
from airflow_cdc_provider.connectors.sources.sqlserver.client import Client, Session, SqlServerClient
from airflow_cdc_provider.connectors.sources.sqlserver.copy import open_copy, read_split
from airflow_cdc_provider.connectors.sources.sqlserver.dead_letters import reread
from airflow_cdc_provider.connectors.sources.sqlserver.identities import identity_of
from airflow_cdc_provider.connectors.sources.sqlserver.options import SqlServerOptions
from airflow_cdc_provider.connectors.sources.sqlserver.stream import ChangeTables
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import SQL_SERVER, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa


class SqlServerSource(KeepsNoState):
    """One database and its change tables. Never run on a real server: the tests use a simulator of the documented
    views and functions."""

    unseen: ClassVar[str] = (
        "rows that ALTER TABLE … SWITCH moves into or out of a table without partitions: "
        'docs/guides/sqlserver.md, "What the change tables do not contain"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.CATALOG,
        drop_column=Report.STREAM,
        replace_column=Report.CATALOG,
        rename_column=Report.CATALOG,
        widen=Report.HOLE,
        narrow=Report.CATALOG,
        rewrite=Report.IMPOSSIBLE,
        change_key=Report.STREAM,
        truncate=Report.IMPOSSIBLE,
        rename_table=Report.NEW_TABLE,
    )
    has_transactions: ClassVar[bool] = True
    announces_columns: ClassVar[bool] = True
    exact_snapshot: ClassVar[bool] = False
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options: SqlServerOptions = from_plain(SqlServerOptions, dict(source.options))
        self.replicator = replicator
        self.client: Client = self.open_client(connection)
        self.stream = ChangeTables(self.client, self.options, replicator, self.sleep)

    def open_client(self, connection: ConnectionInfo) -> Client:
        return SqlServerClient(connection, self.replicator)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.client, self.options, self.replicator, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return refused_tables(self.client, self.options, tables)

    def tls_warnings(self) -> list[Problem]:
        return self.client.tls_warnings()

    def warnings(self) -> list[Problem]:
        return [never_run(self.replicator)]

    def identity(self) -> dict[str, str]:
        with self.client.session("identity") as session:
            rows = list(session.rows(queries.IDENTITY))
        name, guid, fork = rows[0] if rows else ("", "", "")
        return {"database": name, "database_guid": guid, "recovery_fork": fork}

    def tables(self) -> list[TableSchema]:
        with self.client.session("describe") as session:
            return [table.schema for table in self._tables(session).values()]

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        """Requires VIEW DATABASE STATE. Raises CheckFailed without it."""
        with self.client.session("describe") as session:
            return read_sizes(session, [table for name, table in self._tables(session).items() if name in tables])

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SQL_SERVER)

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        with self.client.session("describe") as session:
            described = self._tables(session)
        return {name: identity_of(described[name]) for name in tables if name in described}

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """The stream carries none of them: a captured table cannot be truncated."""
        return changes

    def open_stream(self, tables: Sequence[str]) -> Position:
        return self.stream.open()

    def silent_since(self) -> datetime | None:
        return self.stream.silent_since()

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        return self.stream.status(position, tables)

    def retained_log(self, position: Position | None) -> RetainedLog:
        return self.stream.retained_log(position)

    def wait_for_capture(self) -> None:
        self.stream.wait_for_capture()

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """One: a window ends at one commit for all tables."""
        return [StreamSplit(lo, limit, {})]

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        return self.stream.read(split, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, table, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        return open_copy(self.client, self.options, self.replicator, table, epoch, sealed, cores, self.sleep)

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in the process of a Spark task."""
        return read_split(self.client, self.options, split, schema)

    def _tables(self, session: Session) -> dict[str, CatalogTable]:
        return read_tables(session, self.options.schemas)
