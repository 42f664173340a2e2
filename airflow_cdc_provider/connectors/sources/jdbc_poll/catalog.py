"""Read tables and columns from the catalog."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Type
from airflow_cdc_provider.connectors.sources.jdbc_poll.other_rows import OtherRows, read_other_rows
from airflow_cdc_provider.connectors.sources.jdbc_poll.settings import default_schema
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import source_type
from airflow_cdc_provider.connectors.sources.jdbc_poll.unique_indexes import unenforced_keys
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.source_names import parts_of, table_name

# Since PostgreSQL 18 a column may be NOT NULL for new rows only.
UNVALIDATED_IN_POSTGRES = """
SELECT c.relname::text, a.attname::text
FROM pg_constraint v JOIN pg_class c ON c.oid = v.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = v.conrelid AND a.attnum = ANY (v.conkey)
WHERE n.nspname = %(namespace)s AND v.contype = 'n' AND NOT v.convalidated
"""

# The key of such a table is its rowid: a key that is none has an index.
ROWIDS_OF_SQLITE = """
SELECT t.name, c.name FROM {namespace}.sqlite_master t JOIN pragma_table_info(t.name, :namespace) c
WHERE t.type = 'table' AND c.pk = 1 AND upper(c.type) = 'INTEGER'
  AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name, :namespace) i WHERE i.origin = 'pk')
"""

Named = tuple[str, str]
"""A table and a column."""


@dataclass(frozen=True)
class PolledTable:
    """``types``: column -> SQLAlchemy type. ``nullable``: nullable columns. ``comments``: column -> comment.
    ``read_alone``: without the rows of its inheritance children. ``other_engine``: the storage engine, if it reads the
    rows of other tables. ``unenforced_key``: its primary key need not hold for each row. ``expressions``: of
    computed columns."""

    namespace: str
    name: str
    schema: TableSchema
    types: Mapping[str, Type]
    nullable: frozenset[str]
    comments: Mapping[str, str]
    read_alone: bool = False
    other_engine: str = ""
    unenforced_key: bool = False
    expressions: Mapping[str, str] = field(default_factory=dict)


def name_of(namespace: str, name: str) -> str:
    """Some systems have no schemas."""
    return table_name(namespace, name) if namespace else table_name(name)


def read_catalog(connection: sa.Connection, schemas: Sequence[str], table: str = "") -> dict[str, PolledTable]:
    """``schema.table`` -> table of these schemas; only ``table`` if it is set. The number of queries is independent of
    the number of tables."""
    with _without_warnings():
        return _read_catalog(connection, schemas, table)


def _read_catalog(connection: sa.Connection, schemas: Sequence[str], table: str) -> dict[str, PolledTable]:
    inspector = sa.inspect(connection)
    namespaces = list(schemas) or [default_schema(connection)]
    tables: dict[str, PolledTable] = {}
    for namespace in namespaces:
        only = parts_of(table)[-1] if table else ""
        if table and name_of(namespace, only) != table:
            continue
        names = [only] if only else None
        columns = inspector.get_multi_columns(schema=namespace or None, filter_names=names)
        keys = inspector.get_multi_pk_constraint(schema=namespace or None, filter_names=names)
        unproven, others = _unvalidated(connection, namespace), read_other_rows(connection, namespace)
        unenforced, rowids = unenforced_keys(connection, namespace, only), _rowids(connection, namespace)
        for schema_and_name, read in columns.items():
            name = schema_and_name[1]
            reflected = [{**column, "nullable": _is_nullable(name, column, unproven, rowids)} for column in read]
            key = tuple(keys[schema_and_name]["constrained_columns"]) if schema_and_name in keys else ()
            polled = polled_table(namespace, name, reflected, key, connection.dialect.name, others)
            tables[polled.schema.table] = replace(polled, unenforced_key=name in unenforced)
    return tables


def _unvalidated(connection: sa.Connection, namespace: str) -> frozenset[Named]:
    """Tables with columns that are NOT NULL, but may have NULL in older rows."""
    if connection.dialect.name != "postgresql":
        return frozenset()
    rows = connection.exec_driver_sql(UNVALIDATED_IN_POSTGRES, {"namespace": namespace})
    return frozenset((table, column) for table, column in rows)


def _is_nullable(table: str, column: Any, unproven: frozenset[Named], rowids: frozenset[Named]) -> bool:
    named = (table, column["name"])
    return named in unproven or (bool(column["nullable"]) and named not in rowids)


def _rowids(connection: sa.Connection, namespace: str) -> frozenset[Named]:
    """Tables and columns of SQLite that are never NULL, although they are not declared NOT NULL."""
    if connection.dialect.name != "sqlite":
        return frozenset()
    query = ROWIDS_OF_SQLITE.format(namespace=connection.dialect.identifier_preparer.quote(namespace))
    rows = connection.execute(sa.text(query), {"namespace": namespace})
    return frozenset((table, column) for table, column in rows)


def has_index_on(connection: sa.Connection, table: PolledTable, column: str) -> bool:
    """Whether an index starts with the column."""
    leading = [index["column_names"][0] for index in indexes_of(connection, table) if index["column_names"]]
    return column in (*leading, *table.schema.key[:1])


def indexes_of(connection: sa.Connection, table: PolledTable) -> Sequence[Any]:
    with _without_warnings():
        return sa.inspect(connection).get_indexes(table.name, schema=table.namespace or None)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """A type that SQLAlchemy does not know is read as text, or refused, and an index over expressions proves no key, so
    their warnings are of no use."""
    with warnings.catch_warnings():
        for words in ("Did not recognize type", "Skipped unsupported reflection"):
            warnings.filterwarnings("ignore", words, sa.exc.SAWarning)
        yield


def polled_table(
    namespace: str, name: str, reflected: Sequence[Any], key: tuple[str, ...], system: str, others: OtherRows
) -> PolledTable:
    columns = tuple(
        Column(
            column["name"],
            source_type(column["type"], system).type,
            bool(column["nullable"]),
            native=repr(column["type"]),
        )
        for column in reflected
    )
    return PolledTable(
        namespace,
        name,
        TableSchema(name_of(namespace, name), columns, key),
        {column["name"]: column["type"] for column in reflected},
        frozenset(column["name"] for column in reflected if column["nullable"]),
        {column["name"]: column["comment"] for column in reflected if column.get("comment")},
        read_alone=others.is_read_alone(name),
        other_engine=others.engines.get(name, ""),
        expressions={column["name"]: column["computed"]["sqltext"] for column in reflected if column.get("computed")},
    )
