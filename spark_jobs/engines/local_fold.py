"""The fold by the driver: change records and rows to merge as Arrow tables. Records that must wait go to the
carry-over."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.core.table.schema import Regime
from airflow_cdc_provider.targets.target import CountsRows
from airflow_cdc_provider.targets.unsupported import Unsupported
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import BatchShape
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.engines.needs_spark import NeedsSpark
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, arrow_rows
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.keyless_rows import KeylessRows
from spark_jobs.quarantine.arrow_entries import ArrowEntries
from spark_jobs.quarantine.new_carry import new_carry
from spark_jobs.quarantine.partitioning import RecordPartitioner
from spark_jobs.quarantine.unrepresentable import require_representable
from spark_jobs.windows.local_records import local_records, local_records_and_carry


def fold_locally(batch: BatchInput) -> BuiltBatch | None:
    """As ``Engine.fold``. Raises NeedsSpark."""
    _require_supported(batch)
    if batch.unreadable or batch.may_wait:
        return _fold_with_waiting(batch)
    with local_records(batch.job.log, batch.plan.windows, batch.after, ENTRIES) as entries:
        rows = _rows(batch, entries, batch.stats.shape)
    _write(batch, rows)
    return BuiltBatch(batch.batch(len(rows), KNOWN in rows.column_names))


def _fold_with_waiting(batch: BatchInput) -> BuiltBatch | None:
    """Some records wait, or may have to."""
    log, carry = batch.job.log, batch.control.carry
    batch.require_unchanged_carry()
    with local_records_and_carry(log, batch.plan.windows, batch.after, carry.files) as (records, carried):
        parked = ArrowEntries.of_parked(carried, batch.after)
        parts = RecordPartitioner[ArrowEntries](batch).partition(
            ArrowEntries.of_records(records), parked, batch.unreadable
        )
        if parts is None:
            return None
        rows = _rows(batch, parts.entries.table.select(ENTRIES.names), batch.stats.shape + parts.shape)
    _write(batch, rows)
    assert parts.waiting is not None, "a repair needs Spark"
    carry = new_carry(batch, parts.waiting.table, parts.bad)
    built = batch.batch(len(rows), KNOWN in rows.column_names, carry, parts.discarded)
    return BuiltBatch(built, parts.fetch_error.problems[0] if parts.fetch_error else None)


def _require_supported(batch: BatchInput) -> None:
    if batch.plan.schema.regime is Regime.UNORDERED:
        raise NeedsSpark("a source without ordered delivery")
    if batch.plan.touched:
        raise NeedsSpark("a repair")
    if batch.searches_orphans:
        raise NeedsSpark("a search for rows that the target lacks")


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
        raise NeedsSpark("key changes without all columns")
    return arrow_rows(folded, batch.plan.schema, batch.may_be_partial(shape) and is_partial(folded))


def _keyless(batch: BatchInput, entries: pa.Table) -> pa.Table:
    tables, schema = batch.job.tables, batch.plan.schema

    def count(rows: pa.Table) -> Sequence[int]:
        if batch.truncated_at is not None:
            return [0] * len(rows)
        if not isinstance(tables, CountsRows):
            raise NeedsSpark("rows without a key, which must be counted")
        try:
            return tables.count_rows(batch.task.target, batch.version, schema, batch.plan.added, rows)
        except Unsupported as limit:
            raise NeedsSpark(str(limit)) from None

    ignore = batch.task.rule.on_delete is OnDelete.IGNORE
    return KeylessRows(schema, batch.images.initials(), ignore, count).fold(entries)


def _write(batch: BatchInput, rows: pa.Table) -> None:
    store, folder = batch.job.log.store, f"{batch.folder}/{ROWS}"
    if store.names(folder):  # of a longer batch, which stopped at a bad record
        store.delete(folder)
    with store.open_output(f"{folder}/part-00000.parquet") as content:
        pq.write_table(rows, content, store_schema=False)
    failpoint("stage.after_rows")
