"""The fold by the driver: change records and rows to merge as Arrow tables. Records that must wait go to the
carry-over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.engines import LOCAL_ROWS
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import BatchShape
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.row_files import as_in_file
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.batches.target_rows import TargetRows
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, arrow_rows
from spark_jobs.folds.earlier_rows import converted
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.key_pieces import Piece, pieces_by_key
from spark_jobs.folds.keyless_rows import KeylessRows
from spark_jobs.folds.parents import with_parents
from spark_jobs.folds.unordered_rows import newest_changes, tombstones
from spark_jobs.quarantine.arrow_entries import ArrowEntries
from spark_jobs.quarantine.new_carry import new_carry
from spark_jobs.quarantine.orphan_updates import orphan_update
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.refetch import DirtyKey
from spark_jobs.quarantine.unrepresentable import require_representable
from spark_jobs.runtime.memory_budget import BUDGET
from spark_jobs.windows.local_records import (
    local_records,
    local_records_and_carry,
    records_in_batches,
    records_size,
)

PIECE_BYTES = BUDGET.limit // 4
"""Pieces are unequal: a key with many changes makes one larger."""
ROWS_PER_FILE = 250_000

DELETE, TOMBSTONE = Operation.DELETE.value, Carried.TOMBSTONE.value


def fold_locally(batch: BatchInput) -> BuiltBatch | None:
    """As ``Engine.fold``. Raises NeedsSpark."""
    if batch.plan.touched:
        raise NeedsSpark("a repair")
    if batch.history is not History.NONE:
        raise NeedsSpark("a history")
    if batch.unreadable or batch.may_wait or batch.is_unordered:
        return _fold_with_carry(batch)
    if batch.rows > LOCAL_ROWS:
        return _fold_in_pieces(batch)
    with local_records(batch.job.log, batch.plan.windows, batch.after, ENTRIES) as entries:
        rows = _rows(batch, converted(entries, batch.conversions), batch.stats.shape)
    _write(batch, [rows])
    return BuiltBatch(batch.batch(len(rows), KNOWN in rows.column_names))


def _fold_in_pieces(batch: BatchInput) -> BuiltBatch:
    """A batch that may not fit into the memory. All changes of a key are in one piece."""
    shape, log, windows = batch.stats.shape, batch.job.log, batch.plan.windows
    if not batch.plan.schema.key or shape.moved:
        raise NeedsSpark(f"more than {LOCAL_ROWS:,} rows that depend on each other")
    number = 1 + records_size(log, windows, ENTRIES) // PIECE_BYTES
    known = batch.may_be_partial(shape)
    records = (converted(some, batch.conversions) for some in records_in_batches(log, windows, batch.after, ENTRIES))
    with pieces_by_key(records, ENTRIES, number) as pieces:
        count = _write(batch, (_rows_of_piece(batch, piece, shape, known) for piece in pieces))
    return BuiltBatch(batch.batch(count, known))


def _rows_of_piece(batch: BatchInput, piece: Piece, shape: BatchShape, known: bool) -> pa.Table:
    if piece.bytes > BUDGET.limit:
        raise NeedsSpark(f"more than {BUDGET.limit >> 20} MiB of changes of a few keys")
    with BUDGET.reserve(piece.bytes):
        return _checked(batch, lambda: arrow_rows(batch.fold(shape).rows(piece.read()), batch.plan.schema, known))


def _fold_with_carry(batch: BatchInput) -> BuiltBatch | None:
    """Some records wait, or may have to, or deletes leave tombstones."""
    log, files = batch.job.log, batch.control.carry.files
    batch.require_unchanged_carry()
    with local_records_and_carry(log, batch.plan.windows, batch.after, files) as (records, carried):
        parts = _partitioned(batch, ArrowEntries.of_records(records), carried)
        if parts is None:
            return None
        entries, shape = converted(parts.entries.table, batch.conversions), batch.stats.shape + parts.shape
        waits = [parts.waiting.table] if parts.waiting else []
        if batch.is_unordered:
            entries, buried = _unordered(batch, entries, converted(carried, batch.conversions), shape)
            waits.append(buried)
        rows = _rows(batch, entries.select(ENTRIES.names), shape)
    _write(batch, [rows])
    carry = new_carry(batch, pa.concat_tables(waits), parts.bad)
    built = batch.batch(len(rows), KNOWN in rows.column_names, carry, parts.discarded)
    return BuiltBatch(built, parts.fetch_error.problems[0] if parts.fetch_error else None)


def _partitioned(batch: BatchInput, entries: ArrowEntries, carried: pa.Table) -> PartitionedBatch[ArrowEntries] | None:
    if not (batch.unreadable or batch.may_wait):
        return PartitionedBatch(entries)
    parked = ArrowEntries.of_parked(carried, batch.after)
    orphans = partial(_orphan_updates, batch) if batch.searches_orphans else None
    return RecordPartitioner(batch, orphans).partition(entries, parked, batch.unreadable)


def _orphan_updates(batch: BatchInput, entries: ArrowEntries) -> list[DirtyKey]:
    updates = entries.first_partial_updates()
    found, _ = TargetRows(batch).live([update.k for update in updates])
    present = set(found.tolist())
    return [
        orphan_update(batch.plan.schema, update.k, update.order_key, update.tx_id)
        for number, update in enumerate(updates)
        if number not in present
    ]


def _unordered(batch: BatchInput, entries: pa.Table, carried: pa.Table, shape: BatchShape) -> tuple[pa.Table, pa.Table]:
    """The newest change of each key, and the tombstones of the new carry-over."""
    batch.require_unordered(shape)
    if batch.task.rule.ignores_deletes:
        entries = entries.filter(pc.not_equal(entries["op"], DELETE))
    with batch.integrity_errors():
        newest = newest_changes(pa.concat_tables([entries, carried.filter(pc.equal(carried["kind"], TOMBSTONE))]))
    new = newest.filter(pc.is_null(newest["kind"]))
    late = pc.and_(pc.less_equal(new["order_key"], batch.control.retired_below), pc.not_equal(new["op"], DELETE))
    keys = new["key"].filter(late).to_pylist()
    if keys and len(TargetRows(batch).live(keys)[0]) < len(keys):
        raise NeedsSpark("late changes without a row")
    return new, tombstones(newest, batch.retired_below, batch.now)


def _rows(batch: BatchInput, entries: pa.Table, shape: BatchShape) -> pa.Table:
    """The rows to merge. ``shape``: of the entries."""
    keyed = bool(batch.plan.schema.key)
    return _checked(batch, lambda: _keyed(batch, entries, shape) if keyed else _keyless(batch, entries))


def _checked(batch: BatchInput, fold: Callable[[], pa.Table]) -> pa.Table:
    with batch.integrity_errors():
        try:
            rows = fold()
        except CONVERSION_ERRORS:
            raise NeedsSpark("values in an unusual notation") from None
    require_representable(rows, batch.plan.schema, batch.job.tables)
    return rows


def _keyed(batch: BatchInput, entries: pa.Table, shape: BatchShape) -> pa.Table:
    folded = batch.fold(shape).rows(entries)
    if folded["root"].null_count < len(folded):
        rows = arrow_rows(folded, batch.plan.schema, partial=True)
        return with_parents(rows, folded, batch.plan.schema, TargetRows(batch).live)
    return arrow_rows(folded, batch.plan.schema, batch.may_be_partial(shape) and is_partial(folded))


def _keyless(batch: BatchInput, entries: pa.Table) -> pa.Table:
    count = TargetRows(batch).count if batch.truncated_at is None else _count_none
    ignore = batch.task.rule.ignores_deletes
    return KeylessRows(batch.plan.schema, batch.images.initials(), ignore, count).fold(entries)


def _count_none(rows: pa.Table) -> Sequence[int]:
    """Nothing is left behind a truncate."""
    return [0] * len(rows)


def _write(batch: BatchInput, tables: Iterable[pa.Table]) -> int:
    """The number of rows. A table is one row group; a file has several, since each file is loaded by itself."""
    store, folder = batch.job.log.store, f"{batch.folder}/{ROWS}"
    if store.names(folder):  # of a longer batch, which stopped at a bad record
        store.delete(folder)
    remaining, written = map(as_in_file, tables), list[int]()
    for first in remaining:
        with (
            store.open_output(f"{folder}/part-{len(written):05}.parquet") as content,
            pq.ParquetWriter(content, first.schema, store_schema=False) as file,
        ):
            rows = 0
            for table in chain([first], remaining):
                file.write_table(table)
                rows += len(table)
                if rows >= ROWS_PER_FILE:
                    break
        written.append(rows)
    failpoint("stage.after_rows")
    return sum(written)
