"""The files that Snowflake loads: Parquet with columns of texts, as ``row_texts`` makes them. Texts have no type that
Snowflake could read in its own way.

They are on the internal stage of the target's schema, or in a bucket that a stage of Snowflake's administrator refers
to: credentials of the bucket appear in no statement."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow

from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import stage
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.row_texts import as_texts
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql, exactly, text_literal

STAGE = "_cdc_stage"
FORMAT = "TYPE = PARQUET NULL_IF = ()"
"""By default a text that is \\N may be loaded as NULL."""

FILES_AT_ONCE = 1_000
"""The limit of FILES in one COPY."""


def create_stage(sql: SnowflakeSql) -> str:
    return f"CREATE STAGE IF NOT EXISTS {sql.table(STAGE)}"


def internal_folder(sql: SnowflakeSql, table: str) -> str:
    return f"@{sql.table(STAGE)}/{sql.name(table)}"


def external_folder(sql: SnowflakeSql, stage_name: str, table: str) -> str:
    full = ".".join(map(exactly, stage_parts(sql.database, sql.schema, stage_name)))
    return f"@{full}/{stage.folder(table)}"


def stage_parts(database: str, schema: str, stage_name: str) -> Sequence[str]:
    """``stage_name``: of one part in the target's schema, or of three."""
    parts = stage_name.split(".")
    return parts if len(parts) > 1 else (database, schema, *parts)


def numbered_texts(schema: TableSchema, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        texts = as_texts(batch, schema.names)
        yield pyarrow.RecordBatch.from_arrays(texts.columns, [f"c{n}" for n in range(texts.num_columns)])


def upload(
    cursor: Any, sql: SnowflakeSql, table: str, schema: TableSchema, batches: Iterable[pyarrow.RecordBatch]
) -> LoadedPart:
    """Write a file of a name that no other task uses to the internal stage."""
    name = f"{uuid.uuid4().hex}.parquet"
    with tempfile.TemporaryDirectory(prefix="cdc-load-") as scratch:
        path = Path(scratch) / name
        written = stage.ParquetRows(path, numbered_texts(schema, batches))
        written.close()
        cursor.execute(f"PUT 'file://{path}' {internal_folder(sql, table)} AUTO_COMPRESS = FALSE")
        return LoadedPart(written.rows, name, path.stat().st_size)


def copy_statements(
    sql: SnowflakeSql, table: str, schema: TableSchema, columns: Sequence[str], folder: str, files: Sequence[str]
) -> list[str]:
    """A file that is loaded already is skipped, so a statement can be repeated if its answer was lost. ``folder``: on a
    stage."""
    names = ", ".join(map(sql.quoted, columns))
    values = ", ".join(_value(sql, schema, name, f"$1:c{number}::VARCHAR") for number, name in enumerate(columns))
    head = f"COPY INTO {sql.table(table)} ({names}) FROM (SELECT {values} FROM {folder})"
    chunks = [files[start : start + FILES_AT_ONCE] for start in range(0, len(files), FILES_AT_ONCE)]
    listed = (", ".join(map(text_literal, chunk)) for chunk in chunks)
    return [f"{head} FILES = ({one}) FILE_FORMAT = ({FORMAT}) ON_ERROR = ABORT_STATEMENT" for one in listed]


def _value(sql: SnowflakeSql, schema: TableSchema, name: str, text: str) -> str:
    if name in schema.names:
        return sql.value_of(text, schema.column(name), name in schema.key)
    return f"{text}::BOOLEAN" if name == DELETED else text
