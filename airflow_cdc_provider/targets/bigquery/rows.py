"""Rows on their way to BigQuery and back: typed Parquet to load, texts to read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.bigquery.names import column_name
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql
from airflow_cdc_provider.targets.database.row_texts import as_texts

UTC_TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")


def loadable(batch: pa.RecordBatch, sql: BigQuerySql, schema: TableSchema) -> pa.RecordBatch:
    """With the names and types of the columns in BigQuery. JSON stays text."""
    texts = as_texts(batch, schema.names)
    columns = [
        texts.column(name) if _is_text(name, sql, schema) else _typed(batch.column(name)) for name in batch.schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, list(map(column_name, batch.schema.names)))


def _is_text(name: str, sql: BigQuerySql, schema: TableSchema) -> bool:
    return name == KNOWN or (
        name in schema.names and sql.column_type(schema.column(name), name in schema.key) in ("STRING", "JSON")
    )


def _typed(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_timestamp(kind):
        return values.cast(UTC_TIME if kind.tz else LOCAL_TIME)
    return values


def readable(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Rows of BigQuery as texts under these names; floats stay. Dates become days and timestamps microseconds since
    1970."""
    columns = [_numbered(column.combine_chunks()) for column in table.columns]
    batch = pa.RecordBatch.from_arrays(columns, list(names))
    texts = as_texts(batch, names)
    kept = [
        column if pa.types.is_floating(column.type) else text
        for column, text in zip(batch.columns, texts.columns, strict=True)
    ]
    return pa.Table.from_arrays(kept, list(names))


def _numbered(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_date(values.type):
        return pc.cast(values, pa.date32()).cast(pa.int32())
    return values
