"""A table that lies in shares, each of which any process can read, any number of times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import ReadsSplits
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.runtime.remote_errors import as_remote_failure

ROWS_PER_BATCH = 10_000


def read_pages(
    spark: SparkSession,
    definition: Definition,
    connection: ConnectionInfo,
    shares: Sequence[str],
    schema: TableSchema,
) -> DataFrame:
    """One Spark task per share; each task opens the source for itself, and a task that is tried again reads its share
    again. The connection travels inside the serialised tasks only. Read the frame inside ``from_remote_failure``."""
    columns = ", ".join(f"{quoted(column.name)} {column_type(column.type)}" for column in schema.columns)
    if not shares:
        return spark.createDataFrame([], columns)
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize([(one,) for one in shares], len(shares)), "share STRING"
    )
    rows = partial(_rows, definition, connection, schema)
    return frame.mapInArrow(rows, columns)


def _rows(
    definition: Definition, connection: ConnectionInfo, schema: TableSchema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs in an executor."""
    with as_remote_failure():
        source = open_source(definition, connection)
        assert isinstance(source, ReadsSplits), "only such sources have shares"
        for batch in batches:
            for share in batch.column("share").to_pylist():
                for rows in source.read_split(share, schema):
                    yield from rows.to_batches(ROWS_PER_BATCH)
