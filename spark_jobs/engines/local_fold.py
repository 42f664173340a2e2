"""The fold by the driver: change records and rows to merge as Arrow tables. Records that must wait go to the
carry-over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import BatchShape
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.batches.target_rows import TargetRows
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, arrow_rows
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.keyless_rows import KeylessRows
from spark_jobs.folds.parents import with_parents
from spark_jobs.folds.unordered_rows import newest_changes, tombstones
from spark_jobs.quarantine.arrow_entries import ArrowEntries
from spark_jobs.quarantine.new_carry import new_carry
from spark_jobs.quarantine.orphan_updates import orphan_update
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.refetch import DirtyKey
from spark_jobs.quarantine.unrepresentable import require_representable
from spark_jobs.windows.local_records import local_records, local_records_and_carry

DELETE, TOMBSTONE = Operation.DELETE.value, Carried.TOMBSTONE.value


def fold_locally(batch: BatchInput) -> BuiltBatch | None:
    """As ``Engine.fold``. Raises NeedsSpark."""
    if batch.plan.touched:
        raise NeedsSpark("a repair")
    if batch.history is not History.NONE:
        raise NeedsSpark("a history")
    if batch.unreadable or batch.may_wait or batch.is_unordered:
        return _fold_with_carry(batch)
    with local_records(batch.job.log, batch.plan.windows, batch.after, ENTRIES) as entries:
        rows = _rows(batch, entries, batch.stats.shape)
    _write(batch, rows)
    return BuiltBatch(batch.batch(len(rows), KNOWN in rows.column_names))


def _fold_with_carry(batch: BatchInput) -> BuiltBatch | None:
    """Some records wait, or may have to, or deletes leave tombstones."""
    log, files = batch.job.log, batch.control.carry.files
    batch.require_unchanged_carry()
    with local_records_and_carry(log, batch.plan.windows, batch.after, files) as (records, carried):
        parts = _partitioned(batch, ArrowEntries.of_records(records), carried)
        if parts is None:
            return None
        entries, shape = parts.entries.table, batch.stats.shape + parts.shape
        waits = [parts.waiting.table] if parts.waiting else []
        if batch.is_unordered:
            entries, buried = _unordered(batch, parts, carried, shape)
            waits.append(buried)
        rows = _rows(batch, entries.select(ENTRIES.names), shape)
    _write(batch, rows)
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


def _unordered(
    batch: BatchInput, parts: PartitionedBatch[ArrowEntries], carried: pa.Table, shape: BatchShape
) -> tuple[pa.Table, pa.Table]:
    """The newest change of each key, and the tombstones of the new carry-over."""
    batch.require_unordered(shape)
    entries = parts.entries.table
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
    with batch.integrity_errors():
        try:
            rows = _keyed(batch, entries, shape) if batch.plan.schema.key else _keyless(batch, entries)
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


def _write(batch: BatchInput, rows: pa.Table) -> None:
    store, folder = batch.job.log.store, f"{batch.folder}/{ROWS}"
    if store.names(folder):  # of a longer batch, which stopped at a bad record
        store.delete(folder)
    with store.open_output(f"{folder}/part-00000.parquet") as content:
        pq.write_table(rows, content, store_schema=False)
    failpoint("stage.after_rows")
