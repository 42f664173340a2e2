"""Whether the catalog proves that a declared key identifies rows."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.index_statements import prove_key
from airflow_cdc_provider.connectors.sources.jdbc_poll.unique_indexes import unique_indexes
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import TableSchema

UNENFORCED = (
    ", and a primary key that the server does not enforce for each row: it is disabled, was never validated, has an "
    "unusable index, or some partitions lack it"
)


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
    if any(columns <= key for columns in _unique_keys(connection, described)):
        return None
    return Problem(
        "SRC063",
        f"nothing at the source proves that the key of {table} is unique: one row would overwrite another",
        where=table,
        found=f"no unique index of NOT NULL columns among {listed}" + described.unenforced_key * UNENFORCED,
        allowed="a key that contains the columns of a primary key, or of a unique index without NULLs",
        do=f"{prove_key(connection.dialect, described, schema.key)}; or list other columns under `key`",
    )


def has_primary_key(described: PolledTable, schema: TableSchema) -> bool:
    """Whether the key of ``schema`` contains the one of the table. One of rows of other tables is no constraint."""
    key = frozenset(described.schema.key)
    enforced = bool(key) and not described.other_engine and not described.unenforced_key
    return enforced and key <= frozenset(schema.key)


def _unique_keys(connection: sa.Connection, described: PolledTable) -> Iterator[frozenset[str]]:
    for columns in unique_indexes(connection, described.namespace, described.name):
        if not columns & described.nullable:
            yield columns
