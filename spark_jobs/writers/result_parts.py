"""Reads the result of a query as a DataFrame, part by part in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.targets.sparksql.names import quoted

TYPES = {"STRING": pa.string(), "DOUBLE": pa.float64()}


def read_result(spark: SparkSession, parts: Sequence[Any], columns: Mapping[str, str]) -> DataFrame:
    """``parts``: objects with a method ``to_arrow``, which can be pickled. ``columns``: those of the result in order,
    with their types, STRING or DOUBLE."""
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    numbers = spark.range(0, len(parts), 1, min(len(parts), spark.sparkContext.defaultParallelism) or 1)
    return numbers.mapInArrow(partial(_fetch, parts, columns), schema)


def _fetch(
    parts: Sequence[Any], columns: Mapping[str, str], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs in an executor."""
    schema = pa.schema([(name, TYPES[kind]) for name, kind in columns.items()])
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            table: pa.Table = parts[number].to_arrow()
            yield from table.rename_columns(list(columns)).cast(schema).to_batches()
