"""Which tables there are, and of what columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.types import Type, logical_type
from airflow_cdc_provider.core.table.schema import Column, TableSchema


@dataclass(frozen=True)
class PolledTable:
    """A table as the database shows it. ``types``: column -> SQLAlchemy's type. ``nullable``: columns that may hold
    NULL."""

    namespace: str
    name: str
    schema: TableSchema
    types: Mapping[str, Type]
    nullable: frozenset[str]


def read_catalogue(connection: sa.Connection, schemas: Sequence[str], table: str = "") -> dict[str, PolledTable]:
    """``schema.table`` -> table; all of these schemas, or only the one that is named. A few queries, whatever their
    number."""
    inspector = sa.inspect(connection)
    namespaces = list(schemas) or [inspector.default_schema_name or ""]
    found: dict[str, PolledTable] = {}
    for namespace in namespaces:
        names = None
        if table:
            if not table.startswith(f"{namespace}."):
                continue
            names = [table.removeprefix(f"{namespace}.")]
        columns = inspector.get_multi_columns(schema=namespace or None, filter_names=names)
        keys = inspector.get_multi_pk_constraint(schema=namespace or None, filter_names=names)
        for place, told in columns.items():
            name = place[1]
            key = tuple(keys[place]["constrained_columns"]) if place in keys else ()
            made = _described(namespace, name, told, key, connection.dialect.name)
            found[made.schema.table] = made
    return found


def index_leads(connection: sa.Connection, table: PolledTable, column: str) -> bool:
    """Whether an index begins with the column."""
    indexes = sa.inspect(connection).get_indexes(table.name, schema=table.namespace or None)
    leading = [one["column_names"][0] for one in indexes if one["column_names"]]
    return column in (*leading, *table.schema.key[:1])


def _described(namespace: str, name: str, told: Sequence[Any], key: tuple[str, ...], system: str) -> PolledTable:
    columns = tuple(
        Column(one["name"], logical_type(one["type"], system), bool(one["nullable"]), _native(one["type"]))
        for one in told
    )
    return PolledTable(
        namespace,
        name,
        TableSchema(f"{namespace}.{name}" if namespace else name, columns, key),
        {one["name"]: one["type"] for one in told},
        frozenset(one["name"] for one in told if one["nullable"]),
    )


def _native(kind: Type) -> str:
    return repr(kind)
