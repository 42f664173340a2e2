"""From a stream of changes to the files of one window.

A window contains whole transactions only: the records of an open transaction are kept apart until it ends, and those of
a transaction that is left to the next window are discarded. Memory is bounded by the buffer, whatever the number of
tables and the size of transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import (
    Boundary,
    CutShort,
    HoleFound,
    Ignored,
    OrderFound,
    Resolved,
    SnapshotFound,
    StreamItem,
)
from airflow_cdc_provider.core.log.change_log import SCHEMA, Hole
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.server_orders import ServerOrder
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.spec.schema_policy import SchemaPolicy
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare
from spark_jobs.windows.record_files import RecordFile, WrittenFile
from spark_jobs.windows.table_files import TableFiles

RECORD_OVERHEAD_BYTES = 700
"""Memory of a record besides its two images."""

OVERFLOW = "overflow"
"""The kind of hole that is repaired by copying the whole table."""
OVERFLOW_DETAIL = "the source changed so many rows at once that it does not report them one by one"


@dataclass(frozen=True)
class Limits:
    """A window ends with the first Boundary after ``window_records``, or after ``window_ignored`` changes that are none
    of ours: to read these takes time, too. The buffer is what memory holds at once, over all tables; a full
    buffer makes at most one row group per table."""

    window_records: int = 2_000_000
    window_ignored: int = 20_000_000
    file_records: int = 250_000
    buffer_records: int = 50_000
    buffer_bytes: int = 64 << 20
    open_files: int = 64


class WindowEnd(StrEnum):
    """Why a window ends: the stream was read to its limit, the window is full, a schema change cannot be applied, a
    table has a hole there, or the source could not be read further."""

    LIMIT = "limit"
    SIZE = "size"
    SCHEMA = "schema"
    HOLE = "hole"
    CUT_SHORT = "cut short"


@dataclass(frozen=True)
class LandedSplit:
    """``end`` is the reason for the end; ``hi`` is the end of the last transaction in the window, None where there was
    none. ``ignored`` counts changes of tables that are not replicated. ``resolved``: the latest ``Resolved`` of each
    channel. ``snapshots``: every full snapshot in the stream. ``orders``: the servers of the changes."""

    end: WindowEnd
    hi: dict[str, str] | None
    files: dict[str, tuple[WrittenFile, ...]]
    schemas: tuple[TableSchema, ...]
    holes: tuple[Hole, ...]
    records: int
    ignored: int
    resolved: dict[str, datetime]
    snapshots: tuple[SourceSnapshot, ...] = ()
    orders: tuple[ServerOrder, ...] = ()


def land_changes(
    items: Iterable[StreamItem],
    tables: Iterable[str],
    known: Mapping[str, TableSchema] | None,
    new_file: Callable[[str], RecordFile],
    progress: Callable[[int], None],
    limits: Limits,
    policies: Mapping[str, SchemaPolicy] | None = None,
) -> LandedSplit:
    """Write what ``items`` yields until they end, the window is full, a schema change cannot be applied, or a table has
    a hole.

    ``known`` is the schema of each table before the window. A schema change for which its policy does more than to add
    or to keep a column ends the window before its transaction, so that the table can be altered between two windows.
    Where the first transaction of a window has records from before and after the change, the window ends after it, with
    a hole of kind ``schema``. ``known`` is None for a stream without transactions: the window cannot end before one,
    and schemas may arrive out of order, so the merge decides. An ``overflow`` record ends the window after its
    transaction, with a hole of that kind for its table; a ``HoleFound`` does so with a hole of its own kind.
    ``progress`` is called with the number of records so far. Raises StagingUnavailable; after a failure no file of this
    window is left."""
    writer = _SplitWriter(tables, known, new_file, limits, policies or {})
    try:
        return writer.result(writer.take(items, progress))
    except BaseException:
        writer.discard()
        raise


class _SplitWriter:
    def __init__(
        self,
        tables: Iterable[str],
        known: Mapping[str, TableSchema] | None,
        new_file: Callable[[str], RecordFile],
        limits: Limits,
        policies: Mapping[str, SchemaPolicy],
    ) -> None:
        self.limits = limits
        self.policies = policies
        self.tables = {table: TableFiles(partial(new_file, table), limits.file_records) for table in tables}
        self.known = None if known is None else dict(known)
        self.schemas: dict[str, TableSchema] = {}
        self.breaking: dict[str, str] = {}
        self.touched: set[str] = set()
        self.holes: list[Hole] = []
        self.ended_holes: dict[tuple[str, tuple[str, ...]], Hole] = {}
        self.open_holes: dict[tuple[str, tuple[str, ...]], Hole] = {}
        self.hi: dict[str, str] | None = None
        self.resolved: dict[str, datetime] = {}
        self.snapshots: list[SourceSnapshot] = []
        self.orders: list[ServerOrder] = []
        self.ended = _Counts()
        self.open = _Counts()
        self.space = _BufferSpace(limits.buffer_records, limits.buffer_bytes)
        self.space_before_open = replace(self.space)

    def take(self, items: Iterable[StreamItem], progress: Callable[[int], None]) -> WindowEnd:
        for item in items:
            if isinstance(item, (ChangeRecord, Block)):
                self.touched.add(item.table)
                self._keep(item)
                if self.space.records <= 0 or self.space.bytes <= 0:
                    self._spill()
                    progress(self.ended.records + self.open.records)
            elif isinstance(item, Boundary):
                self._end_transaction(dict(item.position))
                progress(self.ended.records)
                if self.ended_holes:
                    return WindowEnd.HOLE
                if self.breaking or self.holes:
                    return WindowEnd.SCHEMA
                if self.ended.fills(self.limits):
                    return WindowEnd.SIZE
            elif isinstance(item, Ignored):
                self.open.ignored += item.count
            elif isinstance(item, Resolved):
                self.open.ignored += 1
                self.resolved[item.channel] = max(item.at, self.resolved.get(item.channel, item.at))
            elif isinstance(item, CutShort):
                return WindowEnd.CUT_SHORT
            elif isinstance(item, SnapshotFound):
                self.snapshots.append(item.snapshot)
            elif isinstance(item, OrderFound):
                self.orders.append(item.order)
            elif isinstance(item, HoleFound):
                for table in [item.table] if item.table else self.tables:
                    hole = Hole(item.kind, table, item.order_key, detail=item.detail, copies=item.copies)
                    self.open_holes[table, item.copies] = hole
            elif not self._accept_schema(item):
                self.open = _Counts()
                return WindowEnd.SCHEMA
        return WindowEnd.LIMIT

    def result(self, end: WindowEnd) -> LandedSplit:
        return LandedSplit(
            end=end,
            hi=self.hi,
            files={name: table.finish() for name, table in self.tables.items()},
            schemas=tuple(self.schemas.values()),
            holes=tuple(replace(hole, position=self.hi or {}) for hole in (*self.holes, *self.ended_holes.values())),
            records=self.ended.records,
            ignored=self.ended.ignored + self.open.ignored,
            resolved=self.resolved,
            snapshots=tuple(self.snapshots),
            orders=tuple(self.orders),
        )

    def discard(self) -> None:
        for table in self.tables.values():
            table.discard()

    def _keep(self, item: ChangeRecord | Block) -> None:
        self.tables[item.table].rows.append(item)
        if isinstance(item, Block):
            records, size, order_key = item.columns.num_rows, item.columns.nbytes, item.first_order_key
        else:
            records, order_key = 1, item.order_key
            size = RECORD_OVERHEAD_BYTES + len(item.after or "") + len(item.before or "")
            if item.op == Operation.OVERFLOW:
                self.open_holes[item.table, ()] = Hole(OVERFLOW, item.table, order_key, detail=OVERFLOW_DETAIL)
        self.open.records += records
        self.space.records -= records
        self.space.bytes -= size
        if self.breaking and item.table in self.breaking:
            detail = self.breaking.pop(item.table)
            self.holes.append(Hole(SCHEMA, item.table, order_key, detail=detail))

    def _end_transaction(self, position: dict[str, str]) -> None:
        for name in self.touched:
            self.tables[name].end_transaction()
        self.touched.clear()
        self.hi = position
        self.ended_holes |= self.open_holes
        self.open_holes.clear()
        self.ended.records += self.open.records
        self.ended.ignored += self.open.ignored
        self.open = _Counts()
        self.space_before_open = replace(self.space)

    def _accept_schema(self, schema: TableSchema) -> bool:
        """Record a schema. False where its transaction must be left to the next window."""
        if self.known is not None:
            previous = self.known.get(schema.table)
            changes = compare(previous, schema) if previous else ()
            if not self.policies.get(schema.table, SchemaPolicy()).passes(changes):
                if self.hi is not None:
                    return False
                if schema.table in self.touched:
                    self.breaking[schema.table] = "; ".join(map(str, changes))
            self.known[schema.table] = schema
        self.schemas[schema.schema_id] = schema
        return True

    def _spill(self) -> None:
        """Empty the buffer into files. The open transaction stays in memory, unless it fills half of the buffer."""
        limits = self.limits
        open_records = self.space_before_open.records - self.space.records
        open_bytes = self.space_before_open.bytes - self.space.bytes
        include_open = 2 * open_records >= limits.buffer_records or 2 * open_bytes >= limits.buffer_bytes
        for table in self.tables.values():
            table.spill(include_open)
        self.space_before_open = _BufferSpace(limits.buffer_records, limits.buffer_bytes)
        self.space = replace(self.space_before_open)
        if not include_open:
            self.space.records -= open_records
            self.space.bytes -= open_bytes
        if sum(table.file_is_open for table in self.tables.values()) > self.limits.open_files:
            for table in self.tables.values():
                table.close_files()


@dataclass(slots=True)
class _Counts:
    records: int = 0
    ignored: int = 0

    def fills(self, limits: Limits) -> bool:
        return self.records >= limits.window_records or self.ignored >= limits.window_ignored


@dataclass(slots=True)
class _BufferSpace:
    """The space left in the buffer."""

    records: int
    bytes: int
