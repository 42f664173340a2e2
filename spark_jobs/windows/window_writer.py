"""From a stream of changes to the files of one window.

A window holds whole transactions only: records of a transaction that is still open are kept apart until it ends, and
one that is left to the next window leaves nothing behind. Memory is bounded by the buffer, whatever the number of
tables and the size of transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, Resolved, SnapshotFound, StreamItem
from airflow_cdc_provider.core.log.change_log import Hole
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_evolution import compare
from spark_jobs.windows.record_files import RecordFile, WrittenFile
from spark_jobs.windows.table_files import TableFiles

RECORD_OVERHEAD_BYTES = 700
"""What a record in memory costs beside its two images."""

OVERFLOW = "overflow"
"""The kind of hole that is filled by a copy of the whole table."""
OVERFLOWED = "the source changed so many rows at once that it does not tell them one by one"


@dataclass(frozen=True)
class Limits:
    """A window ends with the first Boundary behind ``window_records``. The buffer is what memory holds at once, over
    all tables; a full buffer makes at most one row group per table."""

    window_records: int = 2_000_000
    file_records: int = 250_000
    buffer_records: int = 50_000
    buffer_bytes: int = 64 << 20
    open_files: int = 64


class WindowEnd(StrEnum):
    """Why a window ends where it does: the stream was read to its limit, the window is full, a schema broke, a table
    has a hole there."""

    LIMIT = "limit"
    SIZE = "size"
    SCHEMA = "schema"
    HOLE = "hole"


@dataclass(frozen=True)
class Landed:
    """``hi`` is the end of the last transaction in the window, None where there was none. ``ignored`` counts changes
    that were read and belong to no table of ours. ``resolved``: the latest ``Resolved`` of each channel.
    ``snapshots``: every full snapshot that was met."""

    cut: WindowEnd
    hi: dict[str, str] | None
    files: dict[str, tuple[WrittenFile, ...]]
    schemas: tuple[TableSchema, ...]
    holes: tuple[Hole, ...]
    records: int
    ignored: int
    resolved: dict[str, datetime]
    snapshots: tuple[SourceSnapshot, ...] = ()


def land(
    items: Iterable[StreamItem],
    tables: Iterable[str],
    known: Mapping[str, TableSchema] | None,
    new_file: Callable[[str], RecordFile],
    progress: Callable[[int], None],
    limits: Limits,
) -> Landed:
    """Write what ``items`` yields until they end, the window is full, a schema breaks, or a table overflows.

    ``known`` is the schema each table had before the window. A change of it that cannot be applied by itself ends the
    window before its transaction; where that transaction is the window's first, the window ends after it, with a hole
    of kind ``schema``. None for a stream without transactions: it has no place to end before, and may tell schemas in
    another order than they came about, so the merge judges. An ``overflow`` record ends it behind its transaction, with
    a hole of that kind for its table; a ``HoleFound`` does so with a hole of its own kind.
    ``progress`` is told the number of records so far. Raises StagingUnavailable; a failure leaves no file of this
    window.
    """
    landing = _Landing(tables, known, new_file, limits)
    try:
        return landing.result(landing.take(items, progress))
    except BaseException:
        landing.discard()
        raise


class _Landing:
    def __init__(
        self,
        tables: Iterable[str],
        known: Mapping[str, TableSchema] | None,
        new_file: Callable[[str], RecordFile],
        limits: Limits,
    ) -> None:
        self.limits = limits
        self.tables = {table: TableFiles(partial(new_file, table), limits.file_records) for table in tables}
        self.known = None if known is None else dict(known)
        self.schemas: dict[str, TableSchema] = {}
        self.breaking: dict[str, str] = {}
        self.holes: list[Hole] = []
        self.whole_holes: dict[str, Hole] = {}
        self.open_holes: dict[str, Hole] = {}
        self.hi: dict[str, str] | None = None
        self.resolved: dict[str, datetime] = {}
        self.snapshots: list[SourceSnapshot] = []
        self.ended = _Sum()
        self.open = _Sum()
        self.room = _Room(limits.buffer_records, limits.buffer_bytes)
        self.room_before_open = replace(self.room)

    def take(self, items: Iterable[StreamItem], progress: Callable[[int], None]) -> WindowEnd:
        touched: set[str] = set()
        for item in items:
            if isinstance(item, (ChangeRecord, Block)):
                touched.add(item.table)
                self._keep(item)
                if self.room.records <= 0 or self.room.bytes <= 0:
                    self._spill()
                    progress(self.ended.records + self.open.records)
            elif isinstance(item, Boundary):
                self._end_transaction(touched, dict(item.position))
                progress(self.ended.records)
                if self.whole_holes:
                    return WindowEnd.HOLE
                if self.breaking or self.holes:
                    return WindowEnd.SCHEMA
                if self.ended.records >= self.limits.window_records:
                    return WindowEnd.SIZE
            elif isinstance(item, Ignored):
                self.open.ignored += item.count
            elif isinstance(item, Resolved):
                self.open.ignored += 1
                self.resolved[item.channel] = max(item.at, self.resolved.get(item.channel, item.at))
            elif isinstance(item, SnapshotFound):
                self.snapshots.append(item.snapshot)
            elif isinstance(item, HoleFound):
                for table in [item.table] if item.table else self.tables:
                    self.open_holes[table] = Hole(item.kind, table, item.order_key, detail=item.detail)
            elif not self._admit(item):
                self.open = _Sum()
                return WindowEnd.SCHEMA
        return WindowEnd.LIMIT

    def result(self, cut: WindowEnd) -> Landed:
        return Landed(
            cut=cut,
            hi=self.hi,
            files={name: table.finish() for name, table in self.tables.items()},
            schemas=tuple(self.schemas.values()),
            holes=tuple(replace(hole, position=self.hi or {}) for hole in (*self.holes, *self.whole_holes.values())),
            records=self.ended.records,
            ignored=self.ended.ignored + self.open.ignored,
            resolved=self.resolved,
            snapshots=tuple(self.snapshots),
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
                self.open_holes[item.table] = Hole(OVERFLOW, item.table, order_key, detail=OVERFLOWED)
        self.open.records += records
        self.room.records -= records
        self.room.bytes -= size
        if self.breaking and item.table in self.breaking:
            detail = self.breaking.pop(item.table)
            self.holes.append(Hole("schema", item.table, order_key, detail=detail))

    def _end_transaction(self, touched: set[str], position: dict[str, str]) -> None:
        for name in touched:
            self.tables[name].end_transaction()
        touched.clear()
        self.hi = position
        self.whole_holes |= self.open_holes
        self.open_holes.clear()
        self.ended.records += self.open.records
        self.ended.ignored += self.open.ignored
        self.open = _Sum()
        self.room_before_open = replace(self.room)

    def _admit(self, schema: TableSchema) -> bool:
        """Take note of a schema. False where its transaction has to wait for the next window."""
        if self.known is not None:
            before = self.known.get(schema.table)
            breaking = compare(before, schema).breaking if before else ""
            if breaking and self.hi is not None:
                return False
            if breaking:
                self.breaking[schema.table] = breaking
            self.known[schema.table] = schema
        self.schemas[schema.schema_id] = schema
        return True

    def _spill(self) -> None:
        """Empty the buffer into files. The open transaction stays in memory, unless it fills half of it alone."""
        limits = self.limits
        open_records = self.room_before_open.records - self.room.records
        open_bytes = self.room_before_open.bytes - self.room.bytes
        with_open = 2 * open_records >= limits.buffer_records or 2 * open_bytes >= limits.buffer_bytes
        for table in self.tables.values():
            table.spill(with_open)
        self.room_before_open = _Room(limits.buffer_records, limits.buffer_bytes)
        self.room = replace(self.room_before_open)
        if not with_open:
            self.room.records -= open_records
            self.room.bytes -= open_bytes
        if sum(table.file_is_open for table in self.tables.values()) > self.limits.open_files:
            for table in self.tables.values():
                table.close_files()


@dataclass(slots=True)
class _Sum:
    records: int = 0
    ignored: int = 0


@dataclass(slots=True)
class _Room:
    """What the buffer still takes."""

    records: int
    bytes: int
