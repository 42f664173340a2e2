"""Conditions on change records as Spark columns: the key that a record is an entry of, and which images are partial."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import IMAGE_OPERATIONS, Operation
from spark_jobs.batches.small_frames import small_frame, text_schema

DELETE = Operation.DELETE.value
IMAGES = tuple(sorted(operation.value for operation in IMAGE_OPERATIONS))


def own_key() -> SparkColumn:
    """The key of a change record: of a delete, the key before it."""
    return F.when(F.col("op") == DELETE, F.col("key_before")).otherwise(F.col("key"))


def is_incomplete() -> SparkColumn:
    """A live image without all columns. ``replace`` counts as complete: the columns it lacks are NULL."""
    return F.col("op").isin(*IMAGES) & ~F.col("after_complete") & (F.col("op") != Operation.REPLACE.value)


def with_touched_keys(records: DataFrame, touching: DataFrame) -> DataFrame:
    """The records whose key occurs, before or after, in any record of ``touching``."""
    keys = touching.select(F.explode(F.array("key_before", "key")).alias("k")).where("k IS NOT NULL").distinct()
    return records.withColumn("k", own_key()).join(keys, "k", "left_semi").drop("k")


def without_keys(records: DataFrame, keys: Iterable[str]) -> DataFrame:
    omitted = small_frame(records.sparkSession, {(key,) for key in keys}, text_schema("k"))
    return records.withColumn("k", own_key()).join(omitted, "k", "left_anti").drop("k")


def without_carried_keys(records: DataFrame, carried: DataFrame) -> DataFrame:
    """The records of keys that are not in the carry-over: a repair leaves those keys alone."""
    waiting = carried.select(own_key().alias("k")).distinct()
    return records.withColumn("k", own_key()).join(waiting, "k", "left_anti").drop("k")
