"""A few rows of the driver as a DataFrame that is part of the plan: no job reads it, and joins broadcast it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def small_frame(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(small_table(rows, schema))


def small_table(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if (rows := list(rows)) else ((),) * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def text_schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])
