"""Parquet files of rows in staging, which Spark writes or reads: batches, and splits of copies.

Spark hands the columns of a file to Hadoop as a setting, in which Hadoop replaces ``${…}``, by the environment for
instance: Spark would write another name, or find no column of this name and read NULL. So the files have names without
a dollar sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.batches.staged_columns import column_list


def name_in_file(name: str) -> str:
    """Different for different names."""
    return name.replace("%", "%25").replace("$", "%24")


def name_of_column(name_in_file: str) -> str:
    return name_in_file.replace("%24", "$").replace("%25", "%")


def as_in_file(rows: pa.Table) -> pa.Table:
    return rows.rename_columns(list(map(name_in_file, rows.column_names)))


def as_of_file(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.rename_columns(list(map(name_of_column, batch.schema.names)))


def write_frame(rows: DataFrame, url: str) -> None:
    rows.toDF(*map(name_in_file, rows.columns)).write.mode("overwrite").parquet(url)


def read_frame(spark: SparkSession, schema: TableSchema, more: Sequence[str], urls: Sequence[str]) -> DataFrame:
    """``more``: columns besides those of the schema, as SQL. The types are spelled out, because inferring them from the
    files costs a Spark job."""
    columns = [replace(column, name=name_in_file(column.name)) for column in schema.columns]
    read = spark.read.schema(", ".join([*column_list(columns), *more])).parquet(*urls)
    return read.toDF(*map(name_of_column, read.columns))
