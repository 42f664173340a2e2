"""Objects of a Salesforce org as a source connector that polls them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from airflow_cdc_provider.connectors.source import Copy, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import (
    IDLE_FOR,
    Clock,
    anchor,
    deletes_since,
    ends,
    split_intervals,
    status_of,
)
from airflow_cdc_provider.connectors.sources.polling.pages import DeletesForgotten, Page
from airflow_cdc_provider.connectors.sources.polling.positions import PollPosition, position_of
from airflow_cdc_provider.connectors.sources.polling.reading import first_query, items, whole
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import refuse_rules
from airflow_cdc_provider.connectors.sources.salesforce.copy import opened_pages, read_split
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, described
from airflow_cdc_provider.connectors.sources.salesforce_poll.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import Object
from airflow_cdc_provider.connectors.sources.salesforce_poll.options import read_options
from airflow_cdc_provider.connectors.sources.salesforce_poll.reading import deleted, holds_any, interval
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import SALESFORCE, Specials, may_hold

if TYPE_CHECKING:
    import pyarrow as pa

DELETES_TOLD_FOR = timedelta(days=14)
"""Salesforce tells of deleted records for 15 days, or less."""
TOLD_ALL_THE_SAME = frozenset({"SystemModstamp", "LastActivityDate", "PhotoUrl"})
"""Columns that events do not carry, and queries do."""


class SalesforcePollSource:
    """Salesforce keeps nothing for us. A record comes whole, as it is when it is read; deletes are told for 15 days."""

    unseen: ClassVar[str] = (
        "changes that leave the timestamp as it is, formulas and values of new fields among them: "
        'docs/guides/timestamp-windows.md, "What a poll cannot see"'
    )
    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = False
    repeats_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options)
        self.org = Org(connection, self.options.org, replicator)
        self._described: dict[str, ObjectSchema] = {}

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.org, self.options, tables)

    def identity(self) -> dict[str, str]:
        return self.org.identity()

    def tables(self) -> list[TableSchema]:
        """The objects that the definition lists; those that this user does not see, that cannot be queried, or that
        have no id are left out."""
        found = map(described, self.org.rest.describe_all(sorted(self.options.objects)))
        self._described = {one.schema.table: one for one in found if one.queryable and one.schema.key}
        return [one.schema for one in self._described.values()]

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SALESFORCE)

    def open_stream(self, tables: Sequence[str]) -> Position:
        self.tables()
        clock = self._clock()
        return position_of({table: clock.first(table) for table in tables})

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        return status_of(position, tables, self._clock(tables), self._holds_any)

    def capture_delay(self) -> timedelta:
        return self.options.commit_latency

    def acknowledge(self, position: Position) -> None:
        """Salesforce forgets by its own clock."""

    def drop_stream(self) -> None:
        """Salesforce keeps nothing for a reader."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]:
        return split_intervals(lo, limit)

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        table = ends(partition)[0]
        task = next(task for task in tables if task.table == table)
        refuse_rules([task])
        if not self._stamp(table):
            yield from whole(partition, epoch)
            return
        yield from items(partition, task.schema, epoch, partial(self._pages, self._object(table, task.schema)))

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        """There are none: a page that cannot be read is read again."""
        return [record]

    def read_split(self, share: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one share of a copy, in the table's types. Runs wherever Spark's task runs."""
        return read_split(self.org, share, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """In as many shares as Salesforce makes pages."""
        return self._copy(table, epoch, sealed)

    @contextmanager
    def _copy(self, task: TableTask, epoch: int, sealed: Position) -> Iterator[Copy]:
        refuse_rules([task])
        schema = task.schema
        stands = anchor(sealed, task.table, epoch, self._clock())
        columns = self._of(task.table).snapshot_only - TOLD_ALL_THE_SAME
        untold = tuple(name for name in schema.names if name in columns)
        with opened_pages(self.org, schema) as (read, rows):
            yield Copy(stands.floor, stands.position, schema, read, rows, unlogged=untold)

    def _pages(self, one: Object, lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
        return interval(one, first_query(lo, limit, self.options), deletes_since(lo, self.options))

    def _holds_any(self, table: str, lo: PollPosition, limit: PollPosition) -> bool:
        """Before a quiet table is moved on unread, deletes that no query shows are asked for, too."""
        one = self._object(table)
        if holds_any(one, first_query(lo, limit, self.options)):
            return True
        if limit.upto - lo.upto < IDLE_FOR:
            return False
        try:
            return bool(deleted(one, deletes_since(lo, self.options), limit.upto))
        except DeletesForgotten:
            return True

    def _clock(self, tables: Sequence[str] = ()) -> Clock:
        unstamped = frozenset(table for table in tables if not self._stamp(table))
        schemas = {table: one.schema.schema_id for table, one in self._described.items()}
        return Clock(self.org.rest.now(), self.options, unstamped, DELETES_TOLD_FOR, schemas)

    def _object(self, table: str, schema: TableSchema | None = None) -> Object:
        found = self._of(table)
        return Object(self.org, found, schema or found.schema, self._stamp(table))

    def _stamp(self, table: str) -> str:
        return self.options.timestamp_columns.get(table) or self._of(table).modstamp

    def _of(self, table: str) -> ObjectSchema:
        if table not in self._described:
            self._described[table] = described(self.org.rest.describe(table))
        return self._described[table]
