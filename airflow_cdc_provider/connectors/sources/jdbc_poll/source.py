"""Source connector that polls SQL tables by a timestamp of the last change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy as sa

from airflow_cdc_provider.connectors.copied.altered_tables import require_columns
from airflow_cdc_provider.connectors.key_ranges import range_of
from airflow_cdc_provider.connectors.source import Copy, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, read_catalog
from airflow_cdc_provider.connectors.sources.jdbc_poll.check import (
    filter_problems,
    find_problems,
    missing_table,
    named_timestamp,
    refused_zone,
    require_readable,
    timestamp_column_of,
    unknown_timestamp,
)
from airflow_cdc_provider.connectors.sources.jdbc_poll.copy import open_copy, read_split
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.extras import tls_warnings
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_identities
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.jdbc_poll.other_kinds import read_other_kinds
from airflow_cdc_provider.connectors.sources.jdbc_poll.row_filter import Expression
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import RowConverter
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import TableQueries
from airflow_cdc_provider.connectors.sources.jdbc_poll.server_zone import is_without_zone
from airflow_cdc_provider.connectors.sources.jdbc_poll.sizes import read_sizes
from airflow_cdc_provider.connectors.sources.jdbc_poll.timestamps import propose_timestamps
from airflow_cdc_provider.connectors.sources.jdbc_poll.undetected import undetected_changes
from airflow_cdc_provider.connectors.sources.polling.intervals import IntervalPlanner, poll_status
from airflow_cdc_provider.connectors.sources.polling.pages import Page, Query, Row, read_pages
from airflow_cdc_provider.connectors.sources.polling.positions import PollPosition, table_positions
from airflow_cdc_provider.connectors.sources.polling.reading import first_query, read_items
from airflow_cdc_provider.connectors.sources.polling.source import PollingSource, require_visible_timestamp, task_of
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable, raise_problems
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Condition, Source
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.identity import TableIdentity, UnloggedChanges
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import ANY, SYSTEMS, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa


class JdbcPollSource(PollingSource):
    """Deletes are found by the key audit only."""

    unseen: ClassVar[str] = (
        "changes that do not set the timestamp, and deleted rows without a key audit: "
        'docs/guides/timestamp-windows.md, "What a poll cannot see"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.ROWS,
        drop_column=Report.STREAM,
        replace_column=Report.CATALOG,
        rename_column=Report.CATALOG,
        widen=Report.CATALOG,
        narrow=Report.CATALOG,
        rewrite=Report.ROWS,
        change_key=Report.STREAM,
        rename_table=Report.NEW_TABLE,
    )

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options: JdbcPollOptions = from_plain(JdbcPollOptions, dict(source.options))
        self.database = Database(connection, self.options)
        self._described: dict[str, PolledTable] = {}

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.database, tables)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.options.driver, self.database.info)

    def identity(self) -> dict[str, str]:
        return self.database.identity()

    def tables(self) -> list[TableSchema]:
        with self.database.session() as connection:
            self._described = read_catalog(connection, self.options.schemas)
        return [table.schema for table in self._described.values()]

    def other_kinds(self) -> Mapping[str, OtherKind]:
        with self.database.session() as connection:
            return read_other_kinds(connection, self.options.schemas)

    @staticmethod
    def propose_options(
        replicator: str, connection: ConnectionInfo, given: Mapping[str, Any], patterns: Sequence[str]
    ) -> Mapping[str, Any]:
        """The columns with the time of the last change, by their names and types, and an audit of the keys, which finds
        deletes. Nothing without a driver."""
        if "driver" not in given:
            return {}
        database = Database(connection, from_plain(JdbcPollOptions, {"timestamp_column": "", **given}))
        with database.session() as session:
            tables = [table.schema for table in read_catalog(session, database.options.schemas).values()]
        return {**propose_timestamps(tables, patterns, given.get("timestamp_column", "")), "key_audit": "1d"}

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        with self.database.session() as connection:
            return read_sizes(connection, tables)

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SYSTEMS.get(self.database.system, ANY))

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        with self.database.session() as connection:

            def has_changes(table: str, lo: PollPosition, limit: PollPosition) -> bool:
                queries = self._queries(table)
                query = first_query(lo, limit, self.options, queries.schema.key)
                if refused_zone(connection, queries, self.options):
                    return True  # the bounds of its queries have no meaning: the table is refused
                with self.database.errors():
                    row = connection.execute(queries.any_row(query, self._timestamp_nullable(queries))).first()
                    return row is not None or unknown_timestamp(connection, queries) is not None

            return poll_status(position, tables, self._planner_at(connection), has_changes)

    def comments(self, tables: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """As ``tables`` has read them last, in the same queries."""
        return {table: self._described[table].comments for table in tables if table in self._described}

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """Of the tables in their last description, so that names and identities are from the same time."""
        described = {table: self._described[table] for table in tables if table in self._described}
        with self.database.session() as connection:
            return read_identities(connection, described)

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        """If the queries are refused, ``changes`` is returned unchanged: reading the table reports the problem."""
        lo = table_positions(position, [table])[table]
        try:
            queries = self._queries(table)
        except CheckFailed:
            return changes
        now_read = replace(lo, offset=self._offset(queries.described))
        query = first_query(lo, now_read, self.options, queries.schema.key)
        with self.database.session() as connection:

            def has_row(condition: Expression) -> bool:
                with self.database.errors():
                    return connection.execute(queries.any_row_before(query, [condition])).first() is not None

            try:
                return undetected_changes(
                    changes,
                    now,
                    lambda column: has_row(queries.table.c[column].is_not(None)),
                    lambda oid: has_row(sa.column("tableoid") == int(oid)),
                )
            except CheckFailed:
                return changes

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        task = task_of(split, tables)
        self._require_readable(task)
        queries = self._queries(task.table, task.schema, task.rule.where)
        yield from read_items(split, task, epoch, partial(self._read_pages, queries))

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in a Spark task."""
        key_range = range_of(split)
        return read_split(self.database, self._queries(schema.table, schema, key_range.where), key_range)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        queries = self._queries(table.table, table.schema, table.rule.where)
        self._require_readable(table)
        return open_copy(self.database, queries, epoch, sealed, cores)

    def _require_readable(self, task: TableTask) -> None:
        queries = self._queries(task.table, task.schema, (*task.rule.where, *task.rule.snapshot.where))
        raise_problems(filter_problems(task, queries.described))
        require_readable(self.database, queries)
        require_visible_timestamp(task, queries.timestamp_column)

    def _read_pages(self, queries: TableQueries, lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
        """Each page is a separate statement, so that the server keeps no cursor open. The interval may have been
        planned in another offset than that of the definition now."""
        if limit.offset is not None:
            queries = replace(queries, offset=limit.offset)
        converter = RowConverter(queries)
        with self.database.session() as connection:

            def run(query: Query) -> list[Row]:
                return [converter.page_row(tuple(row)) for row in connection.execute(queries.page(query))]

            yield from read_pages(
                run, first_query(lo, limit, self.options, queries.schema.key), self._timestamp_nullable(queries)
            )

    def _planner(self) -> IntervalPlanner:
        with self.database.session() as connection:
            return self._planner_at(connection)

    def _planner_at(self, connection: sa.Connection) -> IntervalPlanner:
        described = dict(self._described)  # copies of other tables, in other threads, add to it
        schema_ids = {name: table.schema.schema_id for name, table in described.items()}
        columns = {name: named_timestamp(name, self.options) for name in described}
        offsets = {name: self._offset(table) for name, table in described.items()}
        now = self.database.now(connection)
        return IntervalPlanner(now, self.options, schema_ids=schema_ids, timestamp_columns=columns, offsets=offsets)

    def _offset(self, described: PolledTable) -> timedelta | None:
        """None if the timestamps of the table have a time zone."""
        table = described.schema
        name = named_timestamp(table.table, self.options)
        return self.options.offset if name in table.names and is_without_zone(table, name) else None

    def _timestamp_nullable(self, queries: TableQueries) -> bool:
        return queries.timestamp_column in queries.described.nullable

    def _queries(self, table: str, schema: TableSchema | None = None, where: Sequence[Condition] = ()) -> TableQueries:
        """Raises SourceUnavailable (CPY012) if the table has lost a column that they need."""
        described = self._described.get(table) or self._describe(table)
        if schema:
            require_columns(schema, described.schema.names, (condition.column for condition in where))
        return TableQueries(
            described,
            schema or described.schema,
            timestamp_column_of(described, self.options),
            self.options.offset,
            self.database.system,
            where,
        )

    def _describe(self, table: str) -> PolledTable:
        with self.database.session() as connection:
            self._described |= read_catalog(connection, self.options.schemas, table)
        if table not in self._described:
            raise SourceUnavailable(missing_table(self.database, table))
        return self._described[table]
