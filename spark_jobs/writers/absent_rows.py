"""Finds carry-over entries whose row is not in the target."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.row_images import ImageColumns, typed


def entries_without_row(entries: DataFrame, images: ImageColumns, rows: DataFrame) -> DataFrame:
    """The ``entries`` whose canonical key ``k`` is not a key of ``rows`` in the target."""
    schema = images.schema
    keys = entries.withColumn("keys", images.keys(F.col("k")))
    keyed = keys.select(
        "*", *(typed(schema.column(name), f"keys[{n}]").alias(f"_cdc_k{n}") for n, name in enumerate(schema.key))
    )
    target_keys = rows.select(*(F.col(quoted(name)).alias(f"_cdc_t{n}") for n, name in enumerate(schema.key)))
    same = (F.col(f"_cdc_k{n}").eqNullSafe(F.col(f"_cdc_t{n}")) for n in range(len(schema.key)))
    return keyed.join(target_keys, reduce(lambda left, right: left & right, same), "left_anti").select(*entries.columns)
