"""MySQL and MariaDB as a source connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.key_ranges import range_of
from airflow_cdc_provider.connectors.source import Copy, KeepsNoState, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.source_features import TableSnapshot
from airflow_cdc_provider.connectors.sources.mysql.binlog_filters import filtered_tables
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    CatalogTable,
    exists,
    read_comments,
    read_other_kinds,
    read_server,
    read_sizes,
    read_table,
    read_tables,
)
from airflow_cdc_provider.connectors.sources.mysql.check import find_problems, missing_table
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.compare import Statements
from airflow_cdc_provider.connectors.sources.mysql.copy import begin_snapshot, open_copy, read_split, view_of
from airflow_cdc_provider.connectors.sources.mysql.dead_letters import reread
from airflow_cdc_provider.connectors.sources.mysql.identities import hidden_identities, names_now, read_identities
from airflow_cdc_provider.connectors.sources.mysql.options import read_options
from airflow_cdc_provider.connectors.sources.mysql.proofs import SnapshotProofs, can_hash, is_transactional
from airflow_cdc_provider.connectors.sources.mysql.quiet_snapshot import begin_quiet_snapshot
from airflow_cdc_provider.connectors.sources.mysql.refused import refused_problems
from airflow_cdc_provider.connectors.sources.mysql.replication import applied_until
from airflow_cdc_provider.connectors.sources.mysql.stream import Binlog
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_access import tls_warnings
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.identity import NO_UNLOGGED_CHANGES, TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.source_names import parts_of
from airflow_cdc_provider.core.table.special_values import MYSQL, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa


class MysqlSource(KeepsNoState):
    """One server and its binlog. ``binlog_row_image`` decides whether images are full. The server checks keys row by
    row, so at no time do two rows have one key."""

    unseen: ClassVar[str] = (
        "changes of sessions without a binlog, and of rows that a foreign key changes: "
        'docs/guides/mysql.md, "What the binlog does not contain"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.HOLE,
        drop_column=Report.STREAM,
        replace_column=Report.HOLE,
        rename_column=Report.STREAM,
        widen=Report.STREAM,
        narrow=Report.HOLE,
        rewrite=Report.HOLE,
        change_key=Report.STREAM,
        truncate=Report.STREAM,
        rename_table=Report.STREAM,
    )
    has_transactions: ClassVar[bool] = True
    announces_columns: ClassVar[bool] = True
    exact_snapshot: ClassVar[bool] = False
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options, replicator)
        self.client = MysqlClient(connection, replicator)
        self.stream = Binlog(self.client, self.options)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.client, self.options, tables)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        if not tables:
            return {}
        databases = sorted({parts_of(task.name_in_source)[0] for task in tables})
        with self.client.session("check") as connection:
            catalog = read_tables(connection, databases)
            problems = list(refused_problems(connection, self.client.address, tables, catalog))
        return {problem.table: problem for problem in reversed(problems)}

    def filtered(self, tables: Sequence[TableTask]) -> Mapping[str, str]:
        with self.client.session("check") as connection:
            return filtered_tables(connection, tables)

    def other_kinds(self) -> Mapping[str, OtherKind]:
        with self.client.session("describe") as connection:
            return read_other_kinds(connection, self.options.databases)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.client.info)

    def identity(self) -> dict[str, str]:
        with self.client.session("identity") as connection:
            return read_server(connection).identity

    def tables(self) -> list[TableSchema]:
        with self.client.session("describe") as connection:
            return [table.schema for table in read_tables(connection, self.options.databases).values()]

    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        """A renamed table without a known identity is dropped."""
        with self.client.session("describe") as connection:
            names = names_now(connection, {table: identity}) if identity else {}
            return not exists(connection, table) and names is not None and table not in names

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        with self.client.session("describe") as connection:
            identities = read_identities(connection, {parts_of(table)[0] for table in tables}) or {}
        return {table: identities[table] for table in tables if table in identities}

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """The binlog contains the statements that rebuild tables."""
        return NO_UNLOGGED_CHANGES

    def present_names(self, tables: Mapping[str, TableIdentity | None]) -> Mapping[str, str]:
        if not (known := {table: identity for table, identity in tables.items() if identity}):
            return {}
        with self.client.session("describe") as connection:
            return names_now(connection, known) or {}

    def renames_hidden(self) -> Problem | None:
        with self.client.session("check") as connection:
            return hidden_identities(connection, self.client.address)

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        with self.client.session("describe") as connection:
            return read_sizes(connection, tables)

    def comments(self, tables: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        with self.client.session("describe") as connection:
            return read_comments(connection, tables)

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, MYSQL)

    def open_stream(self, tables: Sequence[str]) -> Position:
        return self.stream.open()

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        return self.stream.status(position, tables)

    def silent_since(self) -> datetime | None:
        """Of a replica: how far it has applied its primary. Raises SourceUnavailable (SRC136) if it has stopped."""
        with self.client.session("status") as connection:
            return applied_until(connection, self.client.address)

    def retained_log(self, position: Position | None) -> RetainedLog:
        return self.stream.retained_log(position)

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """The binlog is one stream."""
        return [StreamSplit(lo, limit, {})]

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        return self.stream.read(split, tables, epoch)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return reread(record, table, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        return open_copy(self.client, table, partial(self._table, table.name_in_source), epoch, sealed, cores)

    @contextmanager
    def snapshot(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> Iterator[TableSnapshot]:
        """MariaDB reports the position of a snapshot. That of MySQL is unknown while the table changes all the time."""
        with self.client.session("compare") as connection:
            if read_server(connection).is_mariadb:
                position: Position | None = begin_snapshot(connection, self.client, sealed)
            else:
                position = begin_quiet_snapshot(connection, self.stream, table.name_in_source)
            if position is None:
                with self.copy(table, epoch, sealed, cores) as copy:
                    yield TableSnapshot(copy)
                return
            found = self._table(table.name_in_source)
            copy = view_of(connection, position, table, found, epoch, cores)
            copy = replace(copy, exact=is_transactional(connection, found))
            statements = Statements(found, copy.schema, table.rule.where)
            provable = statements.possible and can_hash(connection)
            yield TableSnapshot(copy, SnapshotProofs(connection, statements) if provable else None)

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in the process of a Spark task."""
        key_range = range_of(split)
        return read_split(self.client, self._table(key_range.table or schema.table), key_range, schema)

    def _table(self, name: str) -> CatalogTable:
        with self.client.session("describe") as connection:
            table = read_table(connection, self.options.databases, name)
        if table is None:
            raise CheckFailed(missing_table(name, self.client.address))
        return table
