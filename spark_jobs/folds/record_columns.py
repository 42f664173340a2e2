"""Conditions on change records as Spark columns: the key that a record is an entry of, and which images are partial."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import IMAGE_OPERATIONS, Operation

DELETE = Operation.DELETE.value
IMAGES = tuple(sorted(operation.value for operation in IMAGE_OPERATIONS))


def own_key() -> SparkColumn:
    """The key that a change record is an entry of: of a delete the key before it."""
    return F.when(F.col("op") == DELETE, F.col("key_before")).otherwise(F.col("key"))


def is_incomplete() -> SparkColumn:
    """A row image that lacks columns. ``replace`` has all of them: those it does not name are NULL."""
    return F.col("op").isin(*IMAGES) & ~F.col("after_complete") & (F.col("op") != Operation.REPLACE.value)


def of_touched_keys(records: DataFrame, touching: DataFrame) -> DataFrame:
    """The records of keys that any record of ``touching`` departs from or arrives at."""
    keys = touching.select(F.explode(F.array("key_before", "key")).alias("k")).where("k IS NOT NULL").distinct()
    return records.withColumn("k", own_key()).join(keys, "k", "left_semi").drop("k")


def without_carried(records: DataFrame, carried: DataFrame) -> DataFrame:
    """The records of keys that have nothing in the carry-over: a repair does not change the others."""
    waiting = carried.select(own_key().alias("k")).distinct()
    return records.withColumn("k", own_key()).join(waiting, "k", "left_anti").drop("k")
