"""The fold by the driver: change records and rows to merge as Arrow tables."""

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
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.engines.needs_spark import NeedsSpark
from spark_jobs.folds.arrow_rows import CONVERSION_ERRORS, arrow_rows
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.keyless_rows import KeylessRows
from spark_jobs.windows.local_records import local_records


def fold_locally(batch: BatchInput) -> BuiltBatch:
    """Raises NeedsSpark, IntegrityBroken."""
    _require_supported(batch)
    with (
        local_records(batch.job.log, batch.plan.windows, batch.after, ENTRIES) as entries,
        batch.integrity_errors(),
    ):
        try:
            rows = _keyed(batch, entries) if batch.plan.schema.key else _keyless(batch, entries)
        except CONVERSION_ERRORS:
            raise NeedsSpark("values in an unusual notation") from None
    _require_representable(batch, rows)
    _write(batch, rows)
    return BuiltBatch(batch.batch(len(rows), KNOWN in rows.column_names))


def _keyed(batch: BatchInput, entries: pa.Table) -> pa.Table:
    shape = batch.stats.shape
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
            raise NeedsSpark("rows of a table without a key, which must be counted")
        try:
            return tables.count_rows(batch.task.target, batch.version, schema, batch.plan.added, rows)
        except Unsupported as limit:
            raise NeedsSpark(str(limit)) from None

    ignore = batch.task.rule.on_delete is OnDelete.IGNORE
    return KeylessRows(schema, batch.images.initials(), ignore, count).fold(entries)


def _require_supported(batch: BatchInput) -> None:
    if batch.plan.schema.regime is Regime.UNORDERED:
        raise NeedsSpark("a source without ordered delivery")
    if batch.plan.touched:
        raise NeedsSpark("a repair")
    if batch.unreadable:
        raise NeedsSpark("bad records")
    if batch.may_wait:
        raise NeedsSpark("records that wait")


def _require_representable(batch: BatchInput, rows: pa.Table) -> None:
    schema, tables = batch.plan.schema, batch.job.tables
    for column in schema.columns:
        restriction = tables.restriction(column, column.name in schema.key)
        if restriction and restriction.refuses_any(rows[column.name]):
            raise NeedsSpark("values that the target cannot hold")


def _write(batch: BatchInput, rows: pa.Table) -> None:
    store, folder = batch.job.log.store, f"{batch.folder}/{ROWS}"
    if store.names(folder):  # of a longer batch, which stopped at a bad record
        store.delete(folder)
    with store.open_output(f"{folder}/part-00000.parquet") as content:
        pq.write_table(rows, content, store_schema=False)
    failpoint("stage.after_rows")
