"""Any SQL table with a timestamp of its last change, as a source connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import sqlalchemy as sa

from airflow_cdc_provider.connectors.key_ranges import range_of
from airflow_cdc_provider.connectors.source import Copy, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, read_catalogue
from airflow_cdc_provider.connectors.sources.jdbc_poll.check import find_problems, refuse, stamp_of
from airflow_cdc_provider.connectors.sources.jdbc_poll.copy import open_copy, read_split
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.extras import unverified
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_identities
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import read_options
from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import Rows
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import Expression, Selectable
from airflow_cdc_provider.connectors.sources.jdbc_poll.undetected import as_polled
from airflow_cdc_provider.connectors.sources.polling.intervals import Clock, ends, split_intervals, status_of
from airflow_cdc_provider.connectors.sources.polling.pages import Page, Query, Row, pages
from airflow_cdc_provider.connectors.sources.polling.positions import PollPosition, poll_positions, position_of
from airflow_cdc_provider.connectors.sources.polling.reading import first_query, items
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Condition, Source
from airflow_cdc_provider.core.table.identity import TableIdentity, UnseenChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import ANY, SYSTEMS, Specials, may_hold

if TYPE_CHECKING:
    import pyarrow as pa


class JdbcPollSource:
    """The database keeps nothing for us, so there is nothing to acknowledge and nothing to drop. A row comes whole, as
    it is when it is read: states in between are never seen, and a row that is gone is not seen at all."""

    unseen: ClassVar[str] = (
        "changes that leave the timestamp as it is, and deleted rows without a key audit: "
        'docs/guides/timestamp-windows.md, "What a poll cannot see"'
    )
    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = False
    repeats_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options)
        self.database = Database(connection, self.options)
        self._described: dict[str, PolledTable] = {}

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.database, tables)

    def unverified(self) -> list[Problem]:
        return unverified(self.options.driver, self.database.info)

    def identity(self) -> dict[str, str]:
        return self.database.identity()

    def tables(self) -> list[TableSchema]:
        with self.database.session() as connection:
            self._described = read_catalogue(connection, self.options.schemas)
        return [one.schema for one in self._described.values()]

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SYSTEMS.get(self.database.system, ANY))

    def open_stream(self, tables: Sequence[str]) -> Position:
        self.tables()
        clock = self._clock()
        return position_of({table: clock.first(table) for table in tables})

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        with self.database.session() as connection:
            clock = Clock(self.database.now(connection), self.options, schemas=self._schemas())

            def holds_any(table: str, lo: PollPosition, limit: PollPosition) -> bool:
                selectable = self._selectable(table)
                query = first_query(lo, limit, self.options)
                with self.database.errors():
                    found = connection.execute(selectable.holds_any(query, self._sweeps(selectable))).first()
                return found is not None

            return status_of(position, tables, clock, holds_any)

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """Of the tables as they were described last: what they are called is compared with what they are."""
        described = {table: self._described[table] for table in tables if table in self._described}
        with self.database.session() as connection:
            return read_identities(connection, described)

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnseenChanges, truncated: bool
    ) -> UnseenChanges:
        """A table that cannot be asked is left to its reading, which says what is wrong and moves nothing on."""
        place, selectable = poll_positions(position, [table])[table], self._selectable(table)
        with self.database.session() as connection:

            def shown(only: Sequence[Expression]) -> bool:
                with self.database.errors():
                    found = connection.execute(selectable.never_again(first_query(place, place, self.options), only))
                    return found.first() is not None

            try:
                return as_polled(
                    changes,
                    now,
                    lambda column: shown([selectable.table.c[column].is_not(None)]),
                    lambda oid: shown([sa.column("tableoid") == int(oid)]),
                )
            except CheckFailed:
                return changes

    def capture_delay(self) -> timedelta:
        return self.options.commit_latency

    def acknowledge(self, position: Position) -> None:
        """A table forgets nothing."""

    def drop_stream(self) -> None:
        """The database keeps nothing for a reader."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]:
        return split_intervals(lo, limit)

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        table = ends(partition)[0]
        task = next(task for task in tables if task.table == table)
        selectable = self._selectable(table, task.schema, task.rule.where)
        refuse(selectable, self.database)
        yield from items(partition, task.schema, epoch, partial(self._pages, selectable))

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """There are none: what a driver gives can be written down."""
        return [record]

    def read_split(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever Spark's task runs."""
        part = range_of(share)
        return read_split(self.database, self._selectable(schema.table, schema, part.where), part)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        selectable = self._selectable(table.table, table.schema, table.rule.where)
        refuse(selectable, self.database)
        return open_copy(self.database, selectable, epoch, sealed, cores)

    def _pages(self, selectable: Selectable, lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
        """Each page is a statement of its own: the server keeps nothing open in between."""
        rows = Rows(selectable)
        with self.database.session() as connection:

            def ask(query: Query) -> list[Row]:
                return [rows.page_row(tuple(row)) for row in connection.execute(selectable.page(query))]

            yield from pages(ask, first_query(lo, limit, self.options), self._sweeps(selectable))

    def _clock(self) -> Clock:
        with self.database.session() as connection:
            return Clock(self.database.now(connection), self.options, schemas=self._schemas())

    def _schemas(self) -> dict[str, str]:
        return {table: one.schema.schema_id for table, one in self._described.items()}

    def _sweeps(self, selectable: Selectable) -> bool:
        return selectable.stamp in selectable.described.nullable

    def _selectable(self, table: str, schema: TableSchema | None = None, where: Sequence[Condition] = ()) -> Selectable:
        described = self._described.get(table) or self._describe(table)
        return Selectable(
            described,
            schema or described.schema,
            stamp_of(described, self.options),
            self.options.offset,
            self.database.system,
            where,
        )

    def _describe(self, table: str) -> PolledTable:
        with self.database.session() as connection:
            self._described |= read_catalogue(connection, self.options.schemas, table)
        return self._described[table]
