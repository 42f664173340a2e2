"""What the catalogue of a polled database says of its tables, apart from names and types of columns.

PostgreSQL shows the most. Others show where a column stands: a column that is dropped behind all others and added again
with its old type is the same to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import Type
from airflow_cdc_provider.connectors.sources.postgres.catalog import DOMAINS
from airflow_cdc_provider.connectors.sources.postgres.identities import read_identities as read_postgres
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogColumn as PostgresTable
from airflow_cdc_provider.core.table.identity import ColumnIdentity, TableIdentity, TablePartition

OIDS = """
SELECT n.nspname || '.' || c.relname, c.oid::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = ANY (%(tables)s) AND c.relkind IN ('r', 'p', 'f')
"""

MYSQL_COLUMNS = """
SELECT table_name, column_name, ordinal_position, data_type, column_type, character_set_name,
       coalesce(character_maximum_length, numeric_precision, datetime_precision), generation_expression
FROM information_schema.columns WHERE table_schema = %(namespace)s
"""

NUMBERED = frozenset({"mssql"})
"""Systems whose positions of columns are numbers that are never used again within a table."""
POSITIONS = """
SELECT table_name, column_name, ordinal_position FROM information_schema.columns WHERE table_schema = :namespace
"""

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})
BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
LISTED = frozenset({"enum", "set"})


def read_identities(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    match connection.dialect.name:
        case "postgresql":
            return _postgres(connection, described)
        case "mysql" | "mariadb":
            return _mysql(connection, described)
        case system:
            numbers = read_numbers(connection, described) if system in NUMBERED else {}
            return {name: plain_identity(table, numbers.get(name)) for name, table in described.items()}


def read_numbers(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, dict[str, int]]:
    """Table -> column -> number."""
    numbers: dict[str, dict[str, int]] = {name: {} for name in described}
    for namespace in sorted({table.namespace for table in described.values()}):
        for table, column, number in connection.execute(sa.text(POSITIONS), {"namespace": namespace}):
            numbers.setdefault(f"{namespace}.{table}", {})[column] = number
    return numbers


def plain_identity(table: PolledTable, numbers: Mapping[str, int] | None) -> TableIdentity:
    """By what SQLAlchemy says of the columns. Without ``numbers`` by their places."""
    columns = {
        name: ColumnIdentity(
            numbers.get(name, 0) if numbers else place,
            type(kind).__name__,
            in_rows=True,
            length=getattr(kind, "length", None),
            labels=_labels(kind),
        )
        for place, (name, kind) in enumerate(table.types.items(), 1)
    }
    return _identity(table.schema.table, columns, positional=numbers is None)


def _mysql(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    columns: dict[str, dict[str, ColumnIdentity]] = {name: {} for name in described}
    for namespace in sorted({table.namespace for table in described.values()}):
        for row in connection.exec_driver_sql(MYSQL_COLUMNS, {"namespace": namespace}):
            table, name = f"{namespace}.{row[0]}", row[1]
            if table in described and name in described[table].types:
                columns[table][name] = _mysql_column(described[table].types[name], *row[2:])
    return {name: _identity(name, told, positional=True) for name, told in columns.items()}


def _mysql_column(
    kind: Type,
    place: int,
    data_type: str,
    column_type: str,
    charset: str | None,
    room: int | None,
    computed: str | None,
) -> ColumnIdentity:
    """A value has the same text in each size of integers, texts and blobs: they are one type of another length. BINARY
    fills its values up to its length."""
    name = data_type.lower()
    family = next(
        (one for one, names in (("integer", INTEGERS), ("text", TEXTS), ("blob", BLOBS)) if name in names), name
    )
    output = (
        column_type
        if name == "binary"
        else " ".join((family, *(["unsigned"] if "unsigned" in column_type else []), *([charset] if charset else [])))
    )
    length = None if name in LISTED or room is None else int(room)
    return ColumnIdentity(place, output, in_rows=True, length=length, labels=_labels(kind), expression=computed or "")


def _identity(table: str, columns: Mapping[str, ColumnIdentity], positional: bool) -> TableIdentity:
    last_number = max((column.number for column in columns.values()), default=0)
    return TableIdentity(table, columns, last_number, positional=positional)


def _labels(kind: Type) -> tuple[str, ...]:
    return tuple(getattr(kind, "enums", ()) or getattr(kind, "values", ()))


class _Session:
    """What the queries of a PostgreSQL source run on: their parameters are those of the drivers."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def execute(self, query: str, params: Mapping[str, Any]) -> Iterable[Any]:
        return self._connection.exec_driver_sql(query, dict(params))


def _postgres(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    session = _Session(connection)
    tables = [
        PostgresTable(oid, described[name].namespace, described[name].name, described[name].schema)
        for name, oid in session.execute(OIDS, {"tables": list(described)})
    ]
    domains = {oid: (base, typmod) for oid, base, typmod in session.execute(DOMAINS, {})}
    return {name: _as_polled(one) for name, one in read_postgres(session, tables, domains).items()}


def _as_polled(told: TableIdentity) -> TableIdentity:
    """Rows older than a column get no value by a poll, so the rows are asked. A partition that left and came back is
    another one: its rows may be others, with old timestamps."""
    columns = {name: replace(one, filled=False, in_rows=True) for name, one in told.columns.items()}
    return replace(told, columns=columns, partitions=dict(_partitions(told)))


def _partitions(told: TableIdentity) -> Iterator[tuple[str, TablePartition]]:
    for oid, partition in told.partitions.items():
        yield (f"{oid}@{partition.joined}" if partition.joined else oid), partition
