"""Rows as Parquet files that COPY reads, and the statements that load them.

COPY takes the columns of a file in their order, and loads neither times with a zone nor SUPER from it. Rows of a table
with such columns go through a second table, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from airflow_cdc_provider.core.table.merge_plan import DELETED, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.database.row_texts import as_texts
from airflow_cdc_provider.targets.redshift.sql import LARGEST_SCALE, TEXT, RedshiftSql, decimal_digits, text_literal

ARROW_TYPES: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.JSON: pa.string(),
    Kind.UUID: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us"),
}


def file_columns(schema: TableSchema, columns: Collection[str]) -> list[str]:
    """All columns of the table, in its order. ``columns``: those that the batches have; a table of staged rows has all
    technical ones."""
    technical = (ORDER, OP, KNOWN) if OP in columns else (ORDER, DELETED)
    return [*schema.names, *(name for name in technical if OP in columns or name in columns)]


def typed(schema: TableSchema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        names = file_columns(schema, batch.schema.names)
        yield pa.RecordBatch.from_arrays([_values(batch, schema, name) for name in names], names)


def _values(batch: pa.RecordBatch, schema: TableSchema, name: str) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    if name == DELETED:
        return batch.column(name).cast(pa.bool_())
    kind = arrow_type(schema.column(name)) if name in schema.names else pa.string()
    if pa.types.is_string(kind):
        return as_texts(batch.select([name]), schema.names).column(0)
    return batch.column(name).cast(kind)


def arrow_type(column: Column) -> pa.DataType:
    if column.type.kind is not Kind.DECIMAL:
        return ARROW_TYPES[column.type.kind]
    precision, scale = decimal_digits(column)
    return pa.decimal128(precision, scale) if scale <= LARGEST_SCALE else pa.string()


def load_statements(
    sql: RedshiftSql, table: str, schema: TableSchema, columns: Collection[str], manifest: str, iam_role: str
) -> list[str]:
    """``columns``: those of the batches. ``manifest``: the URL of the list of files."""
    names, full = file_columns(schema, columns), sql.table(table)
    if not any(_is_converted(sql, schema, name) for name in names):
        return [copy_statement(full, manifest, iam_role)]
    landed = sql.table(f"{table}_l")
    definitions = ", ".join(f"{sql.quoted(name)} {_landed_type(sql, schema, name)}" for name in names)
    values = ", ".join(_converted(sql, schema, name) for name in names)
    return [
        f"CREATE TABLE {landed} ({definitions}) BACKUP NO DISTSTYLE EVEN",
        copy_statement(landed, manifest, iam_role),
        f"INSERT INTO {full} ({', '.join(map(sql.quoted, names))}) SELECT {values} FROM {landed}",
        f"DROP TABLE {landed}",
    ]


def copy_statement(table: str, manifest: str, iam_role: str) -> str:
    return f"COPY {table} FROM {text_literal(manifest)} {authorization(iam_role)} FORMAT AS PARQUET MANIFEST"


def unload_statement(query: str, url: str, iam_role: str) -> str:
    """One file for every slice and 128 MB, so that the tasks of Spark have about equal shares."""
    where = f"TO {text_literal(url)} {authorization(iam_role)}"
    return f"UNLOAD ({text_literal(query)}) {where} FORMAT AS PARQUET MANIFEST MAXFILESIZE 128 MB"


def authorization(iam_role: str) -> str:
    return "IAM_ROLE default" if iam_role == "default" else f"IAM_ROLE {text_literal(iam_role)}"


def _is_converted(sql: RedshiftSql, schema: TableSchema, name: str) -> bool:
    if name not in schema.names:
        return False
    column = schema.column(name)
    return column.type.kind is Kind.TIMESTAMPTZ or sql.is_super(column, name in schema.key)


def _landed_type(sql: RedshiftSql, schema: TableSchema, name: str) -> str:
    if name not in schema.names:
        return sql.flag_type if name == DELETED else TEXT
    column = schema.column(name)
    if not _is_converted(sql, schema, name):
        return sql.column_type(column, name in schema.key)
    return "TIMESTAMP" if column.type.kind is Kind.TIMESTAMPTZ else TEXT


def _converted(sql: RedshiftSql, schema: TableSchema, name: str) -> str:
    value = sql.quoted(name)
    if not _is_converted(sql, schema, name):
        return value
    is_time = schema.column(name).type.kind is Kind.TIMESTAMPTZ
    return f"{value} AT TIME ZONE 'UTC'" if is_time else f"JSON_PARSE({value})"
