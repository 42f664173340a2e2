"""The sizes of polled tables, from the statistics of systems whose statistics are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from airflow_cdc_provider.core.table.source_names import table_name
from airflow_cdc_provider.core.table.table_size import TableSize

MYSQL = "SELECT table_schema, table_name, table_rows, data_length FROM information_schema.tables"

STATISTICS: Mapping[str, str] = {
    "postgresql": "SELECT n.nspname, c.relname, nullif(c.reltuples, -1)::bigint, pg_table_size(c.oid) "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'",
    "mysql": MYSQL,
    "mariadb": MYSQL,
}
"""Schema, table, rows, bytes; by SQLAlchemy's dialect names."""


def read_sizes(connection: sa.Connection, tables: Sequence[str]) -> dict[str, TableSize]:
    query = STATISTICS.get(connection.dialect.name)
    rows = connection.exec_driver_sql(query).all() if query else []
    sizes = {table_name(schema, name): TableSize(rows, size) for schema, name, rows, size in rows}
    return {table: sizes[table] for table in tables if table in sizes}
