"""The row changes of a batch as an Arrow table of the driver. Entries of few keys are looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ARRIVES, IMAGE_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey, own_key
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, typed_arrays
from spark_jobs.folds.json_members import key_image
from spark_jobs.folds.key_groups import entry_keys
from spark_jobs.folds.lives import BEGINS
from spark_jobs.quarantine.entries import Mark, MarkContext, Span, Split
from spark_jobs.quarantine.unrepresentable import require_representable
from spark_jobs.windows.driver_reads import CARRIED_SCHEMA, CarriedRecord, carried_table

Mask = npt.NDArray[np.bool_]


class Entry(NamedTuple):
    """What is read of an entry; its key is ``""`` where it has none."""

    k: str
    order_key: str
    op: str
    after_complete: bool
    phase: int | None
    link_id: str | None
    tx_id: str | None
    commit_ts: datetime | None
    refetch: list[str] | None
    kind: str | None

    @property
    def is_partial(self) -> bool:
        return self.op in IMAGE_OPERATIONS and not self.after_complete and self.op != Operation.REPLACE

    @property
    def is_partial_update(self) -> bool:
        return self.op == Operation.UPDATE and self.is_partial

    def settles(self, ignore_deletes: bool) -> bool:
        """Whether earlier entries of the key do not matter."""
        if self.op == Operation.DELETE:
            return not ignore_deletes
        return (self.op in BEGINS or (self.op in IMAGE_OPERATIONS and self.after_complete)) and not self.refetch


@dataclass(frozen=True)
class ArrowEntries:
    """``table``: with the columns of ``CARRIED_SCHEMA``."""

    table: pa.Table

    @staticmethod
    def of_records(records: pa.Table) -> ArrowEntries:
        """``records``: change records."""
        missing = [field for field in CARRIED_SCHEMA if field.name not in records.column_names]
        for field in missing:
            records = records.append_column(field, pa.nulls(len(records), field.type))
        return ArrowEntries(records.select(CARRIED_SCHEMA.names).cast(CARRIED_SCHEMA))

    @staticmethod
    def of_parked(carried: pa.Table, after: str) -> ArrowEntries:
        """The parked records of a carry-over, above an order key."""
        parked = carried.filter(
            pc.and_(pc.equal(carried["kind"], Carried.PARKED.value), pc.greater(carried["order_key"], after))
        )
        return ArrowEntries.of_records(parked.drop_columns("kind"))

    def of(self, records: Iterable[CarriedRecord]) -> ArrowEntries:
        return ArrowEntries(carried_table(records))

    def union(self, other: ArrowEntries) -> ArrowEntries:
        return ArrowEntries(pa.concat_tables([self.table, other.table]))

    def without(self, records: Iterable[RecordKey]) -> ArrowEntries:
        omitted = {(record.key or "", record.order_key) for record in records}
        orders = pa.array({order for _, order in omitted}, pa.string())
        return self._without(
            pc.is_in(self.table["order_key"], orders), lambda entry: (entry.k, entry.order_key) in omitted
        )

    def without_fetched(self, fetched: Sequence[ChangeRecord]) -> ArrowEntries:
        raise NotImplementedError("histories are folded by Spark")

    def without_superseded(self, fetched: Sequence[ChangeRecord]) -> ArrowEntries:
        if not fetched:
            return self
        taken = dict[str, list[ChangeRecord]]()
        for row in fetched:
            taken.setdefault(own_key(row) or "", []).append(row)
        newer = self._without(self.has_key(taken), lambda entry: _is_superseded(entry, taken[entry.k]))
        deleted = {own_key(row) or "" for row in fetched if row.op == Operation.DELETE}
        born = dict[str, str]()
        for entry in newer.entries(newer.has_key(deleted)):
            if not entry.is_partial_update:
                born[entry.k] = min(entry.order_key, born.get(entry.k, entry.order_key))
        return newer._without(
            newer.has_key(deleted),
            lambda entry: entry.is_partial_update and (entry.k not in born or entry.order_key < born[entry.k]),
        )

    def keys_with_rows(self, keys: Collection[str]) -> set[str]:
        entries = self.entries(self.has_key(keys))
        return {entry.k for entry in entries if not entry.is_partial_update and entry.op != Operation.DELETE}

    def first_partial_updates(self) -> list[Entry]:
        """The first entry of each key whose first entry changes some columns of its row."""
        first = dict[str, Entry]()
        updated = {entry.k for entry in self.entries(pc.equal(self.table["op"], Operation.UPDATE.value))}
        for entry in self.entries(self.has_key(updated)):
            if entry.k not in first or entry.order_key < first[entry.k].order_key:
                first[entry.k] = entry
        return [entry for entry in first.values() if entry.is_partial_update and entry.phase is None]

    def marked(self, moves: bool, ignore_deletes: bool) -> MarkedTable:
        halves = pa.array([], pa.string())
        if moves:
            arrives = pc.and_(pc.equal(self.table["phase"], ARRIVES), pc.invert(self.table["after_complete"]))
            halves = pc.drop_null(self.table["link_id"].filter(arrives)).unique()
        return MarkedTable(self, halves, ignore_deletes)

    def newly_parked(self, now: str) -> ArrowEntries:
        parked = pc.and_(pc.equal(self.table["kind"], Carried.PARKED.value), pc.equal(self.table["since"], now))
        return ArrowEntries(self.table.filter(parked))

    def unrepresentable(self, images: ImageColumns, tables: TargetTables) -> dict[RecordKey, str]:
        """Nothing, or raises NeedsSpark: Spark finds out which records it is."""
        schema = images.schema
        keys = self.keys.to_pylist()
        rows = [
            key_image(schema.key, key) if op == Operation.DELETE else after
            for key, op, after in zip(keys, self.table["op"].to_pylist(), self.table["after"].to_pylist(), strict=True)
        ]
        try:
            columns = typed_arrays(pa.chunked_array([pa.array(rows, pa.string())]), schema)
        except CONVERSION_ERRORS:
            raise NeedsSpark("values in an unusual notation") from None
        require_representable(pa.table(columns, schema.names), schema, tables)
        return {}

    @cached_property
    def keys(self) -> pa.Array:
        """Of each entry; ``""`` where it has none."""
        return pc.fill_null(entry_keys(self.table), "")

    def has_key(self, keys: Iterable[str]) -> pa.Array:
        return pc.is_in(self.keys, pa.array(set(keys), pa.string()))

    def entries(self, chosen: pa.Array) -> Iterator[Entry]:
        """``chosen``: a mask."""
        rows = self.table.filter(chosen)
        columns = [self.keys.filter(chosen).to_pylist()]
        columns += [rows[name].to_pylist() for name in Entry._fields[1:]]
        return map(Entry, *columns)

    def _without(self, candidates: pa.Array, drops: Callable[[Entry], bool]) -> ArrowEntries:
        return ArrowEntries(self.table.filter(pa.array(~self.chosen(candidates, drops))))

    def chosen(self, candidates: pa.Array, condition: Callable[[Entry], bool]) -> Mask:
        """Those of the candidates for which the condition holds."""
        if isinstance(candidates, pa.ChunkedArray):
            candidates = candidates.combine_chunks()
        mask: Mask = candidates.to_numpy(zero_copy_only=False).copy()
        mask[np.flatnonzero(mask)] = [condition(entry) for entry in self.entries(candidates)]
        return mask


@dataclass(frozen=True)
class MarkedTable:
    """``halves``: link ids of moves without all columns."""

    rows: ArrowEntries
    halves: pa.Array
    ignore_deletes: bool

    @cached_property
    def tied(self) -> pa.Array:
        """Which entries are halves of such moves."""
        links = self.rows.table["link_id"]
        return pc.and_(pc.is_in(links, self.halves), pc.is_valid(links)).combine_chunks()

    def contexts(self, marks: Collection[Mark], doubly_held: bool) -> list[MarkContext]:
        by_key = dict[str, list[tuple[Entry, bool]]]()
        chosen = self.rows.has_key(mark.k for mark in marks)
        for entry, tied in zip(self.rows.entries(chosen), self.tied.filter(chosen).to_pylist(), strict=True):
            by_key.setdefault(entry.k, []).append((entry, tied))
        return [self._context(mark, by_key.get(mark.k, []), doubly_held) for mark in marks if mark.k in by_key]

    def _context(self, mark: Mark, entries: Sequence[tuple[Entry, bool]], doubly_held: bool) -> MarkContext:
        settled, tied_at, begun = list[str](), list[str](), list[str]()
        for entry, tied in entries:
            same = entry.tx_id is not None and entry.tx_id == mark.tx
            if same:
                begun.append(entry.order_key)
            if entry.order_key < mark.mark:
                continue
            if tied:
                tied_at.append(entry.order_key)
            elif entry.kind is None and entry.settles(self.ignore_deletes) and not (doubly_held and same):
                settled.append(entry.order_key)
        return MarkContext(mark, *(min(orders, default=None) for orders in (settled, tied_at, begun)))

    def linked_halves(self, cuts: Mapping[str, str]) -> list[Mark]:
        halves = list(self.rows.entries(self.tied))
        links = {half.link_id for half in halves if _waits(half, cuts)}
        return [
            Mark(half.k, half.order_key, half.tx_id)
            for half in halves
            if half.link_id in links and not _waits(half, cuts)
        ]

    def without_updates_in(self, spans: Sequence[Span]) -> tuple[MarkedTable, int]:
        by_key = {span.k: span for span in spans}
        orphans = self.rows.chosen(
            self.rows.has_key(by_key),
            lambda entry: entry.kind is None and entry.is_partial and _is_in(entry, by_key[entry.k]),
        )
        kept = ArrowEntries(self.rows.table.filter(pa.array(~orphans)))
        return MarkedTable(kept, self.halves, self.ignore_deletes), int(orphans.sum())

    def split(self, cuts: Mapping[str, str], now: str) -> Split[ArrowEntries]:
        table = self.rows.table
        waits = pa.array(self.rows.chosen(self.rows.has_key(cuts), lambda entry: _waits(entry, cuts)))
        waiting = _first_of_each(ArrowEntries(table.filter(waits))).table
        for name, value in (("kind", Carried.PARKED.value), ("since", now)):
            waiting = waiting.set_column(
                waiting.column_names.index(name), CARRIED_SCHEMA.field(name), pc.fill_null(waiting[name], value)
            )
        applied = table.filter(pc.and_(pc.invert(waits), pc.is_null(table["kind"])))
        return Split(ArrowEntries(applied), ArrowEntries(waiting))


def _is_superseded(entry: Entry, fetched: Sequence[ChangeRecord]) -> bool:
    if entry.order_key <= max(row.order_key for row in fetched):
        return True
    times = [row.commit_ts for row in fetched if row.commit_ts is not None]
    return entry.commit_ts is not None and bool(times) and entry.commit_ts < max(times)


def _waits(entry: Entry, cuts: Mapping[str, str]) -> bool:
    return entry.k in cuts and entry.order_key >= cuts[entry.k]


def _is_in(entry: Entry, span: Span) -> bool:
    return entry.order_key > span.after and (span.before is None or entry.order_key < span.before)


def _first_of_each(entries: ArrowEntries) -> ArrowEntries:
    """Of entries with one key and order key, the first one."""
    positions = zip(entries.keys.to_pylist(), entries.table["order_key"].to_pylist(), strict=True)
    first = dict[tuple[str, str], int]()
    for number, position in enumerate(positions):
        first.setdefault(position, number)
    return ArrowEntries(entries.table.take(pa.array(list(first.values()), pa.int64())))
