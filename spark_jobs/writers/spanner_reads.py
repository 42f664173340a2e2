"""Reads a table of Spanner as a DataFrame with the target's types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.targets.spanner.columns import StoredColumn, technical_columns
from airflow_cdc_provider.targets.spanner.database import Partition, SpannerDatabase
from airflow_cdc_provider.targets.spanner.row_reads import table_of
from airflow_cdc_provider.targets.spanner.rows import Stored
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type

ROWS_AT_ONCE = 10_000


def read_table(spark: SparkSession, database: SpannerDatabase, stored: Stored) -> DataFrame:
    """All rows as of one time, in parts that Spanner chooses."""
    technical = technical_columns(stored.schema, stored.soft) if stored.schema.key else ()
    columns = (*stored.columns, *technical)
    parts = database.partitions(stored.table, [column.name for column in columns])
    schema = ", ".join(f"{quoted(column.source)} {column_type(column.logical)}" for column in columns)
    numbers = spark.range(0, len(parts), 1, min(len(parts), spark.sparkContext.defaultParallelism) or 1)
    return numbers.mapInArrow(partial(_read, database, stored.table, columns, parts), schema)


def _read(
    database: SpannerDatabase,
    table: str,
    columns: Sequence[StoredColumn],
    parts: Sequence[Partition],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in an executor."""
    names = [column.name for column in columns]
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            rows = database.read_partition(parts[number], table, names)
            while found := list(islice(rows, ROWS_AT_ONCE)):
                yield from table_of(found, columns).to_batches()
