"""Changes of some columns whose row is not in the target: searched for after a merge has failed for it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.record_columns import is_incomplete
from spark_jobs.folds.record_columns import own_key as key_column
from spark_jobs.quarantine.refetch import DirtyKey
from spark_jobs.writers.absent_rows import entries_without_row


def orphan_updates(entries: DataFrame, images: ImageColumns, target: Callable[[], DataFrame]) -> list[DirtyKey]:
    """The first entry of each key whose entry changes some columns of a row that is not in the target. ``entries``: row
    changes."""
    schema = images.schema
    ordered = F.struct("op", is_incomplete().alias("incomplete"), "phase", "order_key", "tx_id")
    first = entries.withColumn("k", key_column()).groupBy("k").agg(F.min_by(ordered, "order_key").alias("first"))
    partial = (F.col("first.op") == Operation.UPDATE.value) & F.col("first.incomplete") & F.col("first.phase").isNull()
    updates = first.where(partial).select("k", "first.order_key", "first.tx_id")
    rows = target()
    live = rows.where(~F.col(DELETED)) if DELETED in rows.columns else rows
    orphans = entries_without_row(updates, images, live).collect()
    return [orphan_update(schema, row["k"], row["order_key"], row["tx_id"]) for row in orphans]


def orphan_update(schema: TableSchema, key: str, order_key: str, tx_id: str | None) -> DirtyKey:
    record = ChangeRecord(schema.table, Operation.GAP.value, order_key, schema.schema_id, key=key, tx_id=tx_id)
    return DirtyKey(record, "a change of some columns found no row in the target")
