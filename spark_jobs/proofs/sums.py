"""Sums per interval of the key, as both sides return them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.proof.key_intervals import IntervalSums, KeyInterval
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.compare import Hash, sums_sql


def frame_sums(
    spark: SparkSession, view: str, schema: TableSchema, hash: Hash, intervals: Sequence[KeyInterval]
) -> list[IntervalSums]:
    """Of the rows of a view."""
    rows = spark.sql(sums_sql(view, schema, hash, intervals)).collect()
    found = {number: IntervalSums(count, tuple(map(int, sums))) for number, count, *sums in rows}
    return sums_of(found, intervals, schema)


def sums_of(
    found: Mapping[int, IntervalSums], intervals: Sequence[KeyInterval], schema: TableSchema
) -> list[IntervalSums]:
    """Of each interval; one that is not found has no rows."""
    empty = IntervalSums(0, (0,) * len(schema.columns))
    return [found.get(number, empty) for number in range(len(intervals))]
