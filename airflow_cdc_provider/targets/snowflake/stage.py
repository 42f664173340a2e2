"""Files on the internal stage of the target's schema: Parquet with columns of texts, as ``row_texts`` makes them. Texts
have no type that Snowflake could read in its own way."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.row_texts import as_texts
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql, text_literal

STAGE = "_cdc_stage"
FILES_AT_ONCE = 1_000
"""The limit of FILES in one COPY."""


def create_stage(sql: SnowflakeSql) -> str:
    return f"CREATE STAGE IF NOT EXISTS {sql.table(STAGE)}"


def folder(sql: SnowflakeSql, table: str) -> str:
    return f"@{sql.table(STAGE)}/{sql.name(table)}"


def upload(
    cursor: Any, sql: SnowflakeSql, table: str, schema: TableSchema, batches: Iterable[pyarrow.RecordBatch]
) -> LoadedPart:
    """Write a file of a name that no other task uses."""
    name, rows = f"{uuid.uuid4().hex}.parquet", 0
    with tempfile.TemporaryDirectory(prefix="cdc-load-") as scratch:
        path, writer = Path(scratch) / name, None
        for batch in batches:
            texts = as_texts(batch, schema.names)
            numbered = pyarrow.RecordBatch.from_arrays(texts.columns, [f"c{n}" for n in range(texts.num_columns)])
            writer = writer or pyarrow.parquet.ParquetWriter(path, numbered.schema, compression="snappy")
            writer.write_batch(numbered)
            rows += batch.num_rows
        if writer is None:
            return LoadedPart(0)
        writer.close()
        cursor.execute(f"PUT 'file://{path}' {folder(sql, table)} AUTO_COMPRESS = FALSE")
    return LoadedPart(rows, name)


def copy_statements(
    sql: SnowflakeSql, table: str, schema: TableSchema, columns: Sequence[str], files: Sequence[str]
) -> list[str]:
    """A file that is loaded already is skipped, so a statement can be repeated if its answer was lost."""
    names = ", ".join(map(sql.quoted, columns))
    values = ", ".join(_value(sql, schema, name, f"$1:c{number}::VARCHAR") for number, name in enumerate(columns))
    head = f"COPY INTO {sql.table(table)} ({names}) FROM (SELECT {values} FROM {folder(sql, table)})"
    chunks = [files[start : start + FILES_AT_ONCE] for start in range(0, len(files), FILES_AT_ONCE)]
    listed = (", ".join(map(text_literal, chunk)) for chunk in chunks)
    return [f"{head} FILES = ({one}) FILE_FORMAT = (TYPE = PARQUET) ON_ERROR = ABORT_STATEMENT" for one in listed]


def _value(sql: SnowflakeSql, schema: TableSchema, name: str, text: str) -> str:
    if name in schema.names:
        return sql.value_of(text, schema.column(name), name in schema.key)
    return f"{text}::BOOLEAN" if name == DELETED else text
