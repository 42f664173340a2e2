"""The fold by the driver: change records and rows to merge as Arrow tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.core.failpoints import failpoint
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.engines.needs_spark import NeedsSpark
from spark_jobs.folds.arrow_rows import arrow_rows
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.windows.local_records import local_records


def fold_locally(batch: BatchInput) -> BuiltBatch:
    """Raises NeedsSpark, IntegrityBroken."""
    _require_supported(batch)
    with (
        local_records(batch.job.log, batch.plan.windows, batch.after, ENTRIES) as entries,
        batch.integrity_errors(),
    ):
        shape = batch.stats.shape
        folded = batch.fold(shape).rows(entries)
        if folded["root"].null_count < len(folded):
            raise NeedsSpark("key changes without all columns")
        partial = batch.may_be_partial(shape) and is_partial(folded)
        rows = arrow_rows(folded, batch.plan.schema, partial)
    if rows is None:
        raise NeedsSpark("values in an unusual notation")
    _write(batch, rows)
    return BuiltBatch(batch.batch(len(rows), partial))


def _require_supported(batch: BatchInput) -> None:
    if not batch.plan.schema.key:
        raise NeedsSpark("a table without a key")
    if not batch.is_keyed:
        raise NeedsSpark("a source without ordered delivery")
    if batch.plan.touched:
        raise NeedsSpark("a repair")
    if batch.unreadable:
        raise NeedsSpark("bad records")
    if batch.may_wait:
        raise NeedsSpark("records that wait")


def _write(batch: BatchInput, rows: pa.Table) -> None:
    store, folder = batch.job.log.store, f"{batch.folder}/{ROWS}"
    if store.names(folder):  # of a longer batch, which stopped at a bad record
        store.delete(folder)
    with store.open_output(f"{folder}/part-00000.parquet") as content:
        pq.write_table(rows, content, store_schema=False)
    failpoint("stage.after_rows")
