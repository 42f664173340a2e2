"""The changes of a batch as rows to append to a log of changes."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.registry import delivers_late
from airflow_cdc_provider.connectors.transports.messages.filtering import LEFT_OUT, MAYBE_LEFT_OUT
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.history import COMMIT_TIME, MISSING, OPERATION, SEQUENCE
from airflow_cdc_provider.core.table.merge_plan import LIVE, OP, ORDER
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.row_images import typed_columns
from spark_jobs.folds.record_columns import DELETE, own_key
from spark_jobs.histories.compared_rows import prefixed, same_key

REPLACE, TRUNCATE = Operation.REPLACE.value, Operation.TRUNCATE.value
MAY_LACK, STORED = "_cdc_may_lack", "_cdc_stored"
"""Whether a change is the delete of a row that the log may not have; whether it is one of the log."""


def staged_changes(batch: BatchInput, entries: DataFrame) -> DataFrame:
    """A deleted row has the values that it had before, as far as the source sends them. A record that was delivered
    twice is one change."""
    images, schema = batch.images, batch.plan.schema
    if batch.task.rule.ignores_deletes:
        entries = entries.where((F.col("op") != DELETE) | F.col("phase").isNotNull())
    entries = entries.where(~_is_marked(LEFT_OUT))
    deleted = F.col("op") == DELETE
    keyed = entries.withColumn("k", own_key()).dropDuplicates(["k", "order_key"])
    values = keyed.withColumn("image", F.when(deleted, F.coalesce("before", "after")).otherwise(F.col("after")))
    whole = F.when(deleted, F.col("before_complete")).otherwise(F.col("after_complete") | (F.col("op") == REPLACE))
    sent = F.coalesce(F.json_object_keys("image"), F.array().cast("array<string>"))
    missing = F.array_except(F.array(*(F.lit(name) for name in schema.names if name not in schema.key)), sent)
    parsed = values.select(
        images.texts(F.col("image")).alias("v"),
        images.keys(F.col("k")).alias("keys"),
        F.col("order_key").alias(SEQUENCE),
        F.col("op").alias(OPERATION),
        F.col("commit_ts").alias(COMMIT_TIME),
        F.when(~whole & (F.size(missing) > 0), F.to_json(missing)).alias(MISSING),
        _is_marked(MAYBE_LEFT_OUT).alias(MAY_LACK),
    )
    rows = parsed.select(
        *typed_columns(schema, "keys", "v"),
        *(SEQUENCE, OPERATION, COMMIT_TIME, MISSING),
        F.col(SEQUENCE).alias(ORDER),
        F.lit(LIVE).alias(OP),
        MAY_LACK,
    )
    filtered = batch.task.rule.where and delivers_late(batch.job.step.definition)
    rows = _of_known_rows(batch, rows) if filtered else rows.drop(MAY_LACK)
    return rows.unionByName(_truncates(batch)) if batch.truncates else rows


def _is_marked(warning: str) -> SparkColumn:
    return F.coalesce(F.array_contains("warnings", warning), F.lit(False))


def _of_known_rows(batch: BatchInput, changes: DataFrame) -> DataFrame:
    """Without deletes of rows that the filter leaves out and that the log did not have before them."""
    schema = batch.plan.schema
    changes = changes.localCheckpoint()
    left_out = changes.where(MAY_LACK)
    if left_out.isEmpty():
        return changes.drop(MAY_LACK)
    stored = batch.stored_rows()
    of_keys = stored.join(prefixed(schema, left_out), same_key(schema), "left_semi")
    key = [quoted(name) for name in schema.key]
    earlier = of_keys.select(*key, SEQUENCE, OPERATION).withColumn(STORED, F.lit(True))
    both = changes.withColumn(STORED, F.lit(False)).unionByName(earlier, allowMissingColumns=True)
    by_key = Window.partitionBy(*key).orderBy(SEQUENCE)
    before, operation = F.lag(SEQUENCE).over(by_key), F.lag(OPERATION).over(by_key)
    found = both.withColumns({"_cdc_before": before, "_cdc_had": F.coalesce(operation != DELETE, F.lit(False))})
    ended = F.exists(_truncate_orders(batch, stored), lambda at: (F.col("_cdc_before") < at) & (at < F.col(SEQUENCE)))
    remain = ~F.col(STORED) & (~F.col(MAY_LACK) | (F.col("_cdc_had") & ~ended))
    return found.where(remain).select(*(quoted(name) for name in changes.drop(MAY_LACK).columns))


def _truncate_orders(batch: BatchInput, stored: DataFrame) -> SparkColumn:
    """The last truncate of the log, and those of the batch."""
    (last,) = stored.where(F.col(OPERATION) == TRUNCATE).agg(F.max(SEQUENCE)).collect()[0]
    orders = [order for order in (last, *(one.order_key for one in batch.truncates)) if order]
    return F.array(*map(F.lit, orders)).cast("array<string>")


def _truncates(batch: BatchInput) -> DataFrame:
    """Changes of all rows: no column has a value."""
    found = [(one.order_key, one.at) for one in batch.truncates]
    frame = batch.spark.createDataFrame(found, f"{SEQUENCE} STRING, at BIGINT")
    return frame.select(
        *(F.lit(None).cast(column_type(column.type)).alias(column.name) for column in batch.plan.schema.columns),
        SEQUENCE,
        F.lit(Operation.TRUNCATE.value).alias(OPERATION),
        F.timestamp_micros("at").alias(COMMIT_TIME),
        F.lit(None).cast("string").alias(MISSING),
        F.col(SEQUENCE).alias(ORDER),
        F.lit(LIVE).alias(OP),
    )
