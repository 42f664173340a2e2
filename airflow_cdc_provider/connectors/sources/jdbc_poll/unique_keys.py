"""Whether the catalog proves that a declared key identifies rows."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, indexes_of
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import TableSchema

VALID_IN_POSTGRES = """
SELECT ARRAY(
  SELECT a.attname::text FROM pg_attribute a
  WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(namespace)s AND c.relname = %(name)s
  AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
"""


def key_problem(connection: sa.Connection, described: PolledTable, schema: TableSchema) -> Problem | None:
    """A key that contains the primary key, or a unique index of columns that are NOT NULL, is unique."""
    key = frozenset(schema.key)
    if not key or has_primary_key(described, schema):
        return None
    table, listed = schema.table, ", ".join(schema.key)
    if described.other_engine:
        return Problem(
            "SRC063",
            f"nothing at the source proves that the key of {table} is unique: it has the rows of other tables",
            where=table,
            found=f"ENGINE={described.other_engine}, whose indexes are no constraints on these rows",
            allowed="tables whose engine stores their rows",
            do="replicate the tables that hold the rows, and leave this one out",
        )
    if any(columns <= key for columns in _unique_indexes(connection, described)):
        return None
    return Problem(
        "SRC063",
        f"nothing at the source proves that the key of {table} is unique: one row would overwrite another",
        where=table,
        found=f"no unique index of NOT NULL columns among {listed}",
        allowed="a key that contains the columns of a primary key, or of a unique index without NULLs",
        do=f"CREATE UNIQUE INDEX ON {table} ({listed}), or list other columns under `key`",
    )


def has_primary_key(described: PolledTable, schema: TableSchema) -> bool:
    """Whether the key of ``schema`` contains the one of the table. One of rows of other tables is no constraint."""
    key = frozenset(described.schema.key)
    return bool(key) and not described.other_engine and key <= frozenset(schema.key)


def _unique_indexes(connection: sa.Connection, described: PolledTable) -> Iterator[frozenset[str]]:
    if connection.dialect.name == "postgresql":
        names = {"namespace": described.namespace, "name": described.name}
        found = [frozenset(columns) for (columns,) in connection.exec_driver_sql(VALID_IN_POSTGRES, names)]
    else:
        found = [
            frozenset(name for name in index["column_names"] if name)
            for index in indexes_of(connection, described)
            if index["unique"] and None not in index["column_names"] and not _is_filtered(index.get("dialect_options"))
        ]
    for columns in found:
        if columns and not columns & described.nullable:
            yield columns


def _is_filtered(options: object) -> bool:
    """A condition is no truth value: SQLite's is a clause of SQLAlchemy."""
    return isinstance(options, dict) and any(
        name.endswith("_where") and value is not None for name, value in options.items()
    )
