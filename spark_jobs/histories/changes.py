"""The changes of a batch as rows to append to a log of changes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.history import COMMIT_TIME, MISSING, OPERATION, SEQUENCE
from airflow_cdc_provider.core.table.merge_plan import LIVE, OP, ORDER
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.row_images import typed_columns
from spark_jobs.folds.record_columns import DELETE, own_key

REPLACE = Operation.REPLACE.value


def staged_changes(batch: BatchInput, entries: DataFrame) -> DataFrame:
    """A deleted row has the values that it had before, as far as the source sends them. A record that was delivered
    twice is one change."""
    images, schema = batch.images, batch.plan.schema
    if batch.task.rule.ignores_deletes:
        entries = entries.where((F.col("op") != DELETE) | F.col("phase").isNotNull())
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
    )
    rows = parsed.select(
        *typed_columns(schema, "keys", "v"),
        *(SEQUENCE, OPERATION, COMMIT_TIME, MISSING),
        F.col(SEQUENCE).alias(ORDER),
        F.lit(LIVE).alias(OP),
    )
    return rows.unionByName(_truncates(batch)) if batch.truncates else rows


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
