"""Source connector that polls Salesforce objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_cdc_provider.connectors.source import Copy, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import (
    ADVANCE_AFTER,
    IntervalPlanner,
    copy_anchor,
    deletes_since,
    poll_status,
)
from airflow_cdc_provider.connectors.sources.polling.pages import DeletesExpired, Page
from airflow_cdc_provider.connectors.sources.polling.positions import PollPosition
from airflow_cdc_provider.connectors.sources.polling.reading import first_query, read_items, reload_items
from airflow_cdc_provider.connectors.sources.polling.source import PollingSource, require_visible_timestamp, task_of
from airflow_cdc_provider.connectors.sources.salesforce.check_tables import require_supported_rules
from airflow_cdc_provider.connectors.sources.salesforce.copy import open_splits, read_split
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce_poll.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import (
    PolledObject,
    matching_objects,
    named_timestamp,
    timestamp_column_of,
)
from airflow_cdc_provider.connectors.sources.salesforce_poll.options import SalesforcePollOptions
from airflow_cdc_provider.connectors.sources.salesforce_poll.reading import deleted_ids, has_rows, read_interval
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.reported_changes import Report, ReportedChanges
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import SALESFORCE, Specials, may_hold
from airflow_cdc_provider.core.table.table_size import TableSize

if TYPE_CHECKING:
    import pyarrow as pa

DELETES_RETAINED_FOR = timedelta(days=14)
"""Salesforce lists deleted records for 15 days, or less."""
POLLED_COLUMNS = frozenset({"SystemModstamp", "LastActivityDate", "PhotoUrl"})
"""Columns whose changes queries find, although events do not carry them."""


class SalesforcePollSource(PollingSource):
    """Salesforce lists deleted records for 15 days."""

    unseen: ClassVar[str] = (
        "changes that do not set the timestamp, such as those of formulas and of new fields: "
        'docs/guides/timestamp-windows.md, "What a poll cannot see"'
    )
    reported_changes: ClassVar[ReportedChanges] = ReportedChanges(
        add_column=Report.STREAM,
        filled_column=Report.PARTIAL,
        drop_column=Report.STREAM,
        rename_column=Report.NAME,
        widen=Report.STREAM,
        narrow=Report.STREAM,
        change_key=Report.IMPOSSIBLE,
        rename_table=Report.NEW_TABLE,
    )

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options: SalesforcePollOptions = from_plain(SalesforcePollOptions, dict(source.options))
        self.org = Org(connection, self.options.org, replicator)
        self._described: dict[str, ObjectSchema] = {}

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        return find_problems(self.org, self.options, tables)

    @staticmethod
    def propose_options(
        replicator: str, connection: ConnectionInfo, given: Mapping[str, Any], patterns: Sequence[str]
    ) -> Mapping[str, Any]:
        """The objects that match, and an audit of the keys, which finds deletes that Salesforce does not list."""
        if "objects" in given:
            return {"key_audit": "1d"}
        options = from_plain(SalesforcePollOptions, {"objects": [], **given})
        org = Org(connection, options.org, replicator)
        return {"objects": matching_objects(org.rest.objects(), patterns), "key_audit": "1d"}

    def identity(self) -> dict[str, str]:
        return self.org.identity()

    def tables(self) -> list[TableSchema]:
        """The objects of the definition, without those that the user cannot see, that cannot be queried, or that have
        no id."""
        objects = self.org.rest.describe_all(self.options.objects)
        self._described = {entity.schema.table: entity for entity in objects if entity.copyable}
        return [entity.schema for entity in self._described.values()]

    def sizes(self, tables: Sequence[str]) -> Mapping[str, TableSize]:
        """Salesforce counts records, not bytes."""
        return {name: TableSize(rows) for name, rows in self.org.rest.record_counts(tables).items()}

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, SALESFORCE)

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        return poll_status(position, tables, self._planner(tables), self._has_changes)

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        task = task_of(split, tables)
        self._require_readable(task)
        if not self._timestamp_column(task.table):
            yield from reload_items(split, epoch)
            return
        yield from read_items(split, task, epoch, partial(self._read, self._object(task.table, task.schema)))

    def read_split(self, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        """The rows of one split of a copy, in the table's types. Runs in a Spark task."""
        return read_split(self.org, split, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """In one split per result page."""
        return self._copy(table, epoch, sealed)

    @contextmanager
    def _copy(self, task: TableTask, epoch: int, sealed: Position) -> Iterator[Copy]:
        self._require_readable(task)
        schema = task.schema
        anchor = copy_anchor(sealed, task.table, epoch, self._planner())
        described = self._describe(task.table)
        columns = described.snapshot_only - POLLED_COLUMNS
        unlogged = tuple(name for name in schema.names if name in columns)
        with open_splits(self.org, schema, described) as (read, rows):
            yield Copy(anchor.floor, anchor.position, schema, read, rows, unlogged=unlogged)

    def _read(self, entity: PolledObject, lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
        query = first_query(lo, limit, self.options, entity.schema.key)
        return read_interval(entity, query, None if lo.after else deletes_since(lo, self.options))

    def _has_changes(self, table: str, lo: PollPosition, limit: PollPosition) -> bool:
        """Before the position of an idle table is advanced, deletes that no query shows are checked, too."""
        entity = self._object(table)
        if has_rows(entity, first_query(lo, limit, self.options, entity.schema.key)):
            return True
        if limit.upto - lo.upto < ADVANCE_AFTER:
            return False
        try:
            return bool(deleted_ids(entity, deletes_since(lo, self.options), limit.upto))
        except DeletesExpired:
            return True

    def _planner(self, tables: Sequence[str] = ()) -> IntervalPlanner:
        reload_tables = frozenset(t for t in tables if not named_timestamp(self._describe(t), self.options))
        described = dict(self._described)  # copies of other tables, in other threads, add to it
        schema_ids = {table: entity.schema.schema_id for table, entity in described.items()}
        columns = {table: named_timestamp(entity, self.options) for table, entity in described.items()}
        now = self.org.rest.now()
        return IntervalPlanner(now, self.options, reload_tables, DELETES_RETAINED_FOR, schema_ids, columns)

    def _require_readable(self, task: TableTask) -> None:
        require_supported_rules([task])
        if column := self._timestamp_column(task.table):
            require_visible_timestamp(task, column)

    def _object(self, table: str, schema: TableSchema | None = None) -> PolledObject:
        described = self._describe(table)
        return PolledObject(self.org, described, schema or described.schema, self._timestamp_column(table))

    def _timestamp_column(self, table: str) -> str:
        """Empty if there is none. Raises CheckFailed (SRC062)."""
        return timestamp_column_of(self._describe(table), self.options)

    def _describe(self, table: str) -> ObjectSchema:
        if table not in self._described:
            self._described[table] = self.org.rest.describe(table)
        return self._described[table]
