"""Read the identities of polled tables and their columns from the catalog.

PostgreSQL has the most detail. SQL Server has numbers of tables and columns that are never used again. Other systems
have the ordinal positions of columns, so a last column that is dropped and added again with its old type keeps its
identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, name_of
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Type
from airflow_cdc_provider.connectors.sources.postgres.catalog import DOMAINS
from airflow_cdc_provider.connectors.sources.postgres.identities import read_identities as read_postgres
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable as PostgresTable
from airflow_cdc_provider.connectors.sources.postgres.table_names import OF_TABLES, in_sql
from airflow_cdc_provider.core.table.identity import ColumnIdentity, TableIdentity, TablePartition
from airflow_cdc_provider.core.table.source_names import table_name

OIDS = f"""
SELECT n.nspname, c.relname, c.oid::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE {OF_TABLES} AND c.relkind IN ('r', 'p', 'f')
"""

MYSQL_COLUMNS = """
SELECT table_name, column_name, ordinal_position, data_type, column_type, character_set_name,
       coalesce(character_maximum_length, numeric_precision, datetime_precision), generation_expression
FROM information_schema.columns WHERE table_schema = %(namespace)s
"""

SQL_SERVER_COLUMNS = """
SELECT t.name, t.object_id, CONVERT(varchar(23), t.create_date, 121), t.max_column_id_used, c.name, c.column_id,
       CASE WHEN y.name IN ('time', 'datetime2', 'datetimeoffset') THEN CONVERT(varchar(3), c.scale)
            WHEN y.name IN ('char', 'varchar', 'text') THEN c.collation_name END
FROM sys.tables t
JOIN sys.schemas s ON s.schema_id = t.schema_id
JOIN sys.columns c ON c.object_id = t.object_id
LEFT JOIN sys.types y ON y.user_type_id = c.system_type_id
WHERE s.name = :namespace
"""
"""INFORMATION_SCHEMA has positions, which are used again. The last column: digits of a second, to which the server
rounds, or the collation whose code page decides which texts a column can have."""

FORM = 1
"""Of identities with expressions, and of SQL Server with ids of tables, numbers of columns and details of types. SQL
Server hides expressions without a permission, and none is altered without a new column."""

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})
BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
LABELLED = frozenset({"enum", "set"})


def read_identities(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    match connection.dialect.name:
        case "postgresql":
            return _postgres(connection, described)
        case "mysql" | "mariadb":
            return _mysql(connection, described)
        case "mssql":
            return _sql_server(connection, described)
        case _:
            return {name: reflected_identity(table) for name, table in described.items()}


def reflected_identity(table: PolledTable) -> TableIdentity:
    """From SQLAlchemy's column types. Columns are numbered in their order."""
    columns = {
        name: ColumnIdentity(
            position,
            type(kind).__name__,
            in_rows=True,
            length=getattr(kind, "length", None),
            labels=_labels(kind),
            expression=table.expressions.get(name, ""),
        )
        for position, (name, kind) in enumerate(table.types.items(), 1)
    }
    return replace(_identity(table.schema.table, columns, positional=True), form=FORM)


def _sql_server(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    identities = {name: reflected_identity(table) for name, table in described.items()}
    numbered: dict[str, TableIdentity] = {}
    for namespace in sorted({table.namespace for table in described.values()}):
        for row in connection.execute(sa.text(SQL_SERVER_COLUMNS), {"namespace": namespace}):
            table, object_id, created, last_number, column, number, detail = row
            name = name_of(namespace, table)
            if name not in identities or column not in identities[name].columns:
                continue
            known = numbered.setdefault(name, TableIdentity(f"{object_id} {created}", {}, last_number, form=FORM))
            one = identities[name].columns[column]
            one = replace(one, number=number, type=f"{one.type} {detail}" if detail else one.type, expression="")
            numbered[name] = replace(known, columns={**known.columns, column: one})
    return identities | numbered


def _mysql(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    columns: dict[str, dict[str, ColumnIdentity]] = {name: {} for name in described}
    for namespace in sorted({table.namespace for table in described.values()}):
        for row in connection.exec_driver_sql(MYSQL_COLUMNS, {"namespace": namespace}):
            table, name = name_of(namespace, row[0]), row[1]
            if table in described and name in described[table].types:
                columns[table][name] = _mysql_column(described[table].types[name], *row[2:])
    return {name: _identity(name, identities, positional=True) for name, identities in columns.items()}


def _mysql_column(
    kind: Type,
    position: int,
    data_type: str,
    column_type: str,
    charset: str | None,
    size: int | None,
    expression: str | None,
) -> ColumnIdentity:
    """All integer types print a value alike, as all text and all blob types do, so they count as one type of different
    lengths. BINARY pads its values to its length."""
    name = data_type.lower()
    families = (("integer", INTEGERS), ("text", TEXTS), ("blob", BLOBS))
    family = next((family for family, names in families if name in names), name)
    output = (
        column_type
        if name == "binary"
        else " ".join((family, *(["unsigned"] if "unsigned" in column_type else []), *([charset] if charset else [])))
    )
    length = None if name in LABELLED or size is None else int(size)
    labels = _labels(kind)
    return ColumnIdentity(position, output, in_rows=True, length=length, labels=labels, expression=expression or "")


def _identity(table: str, columns: Mapping[str, ColumnIdentity], positional: bool) -> TableIdentity:
    last_number = max((column.number for column in columns.values()), default=0)
    return TableIdentity(table, columns, last_number, positional=positional)


def _labels(kind: Type) -> tuple[str, ...]:
    return tuple(getattr(kind, "enums", ()) or getattr(kind, "values", ()))


class _Session:
    """Runs the queries of the PostgreSQL source, which have parameters in the driver's style."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def execute(self, query: str, params: Mapping[str, Any]) -> Iterable[Any]:
        return self._connection.exec_driver_sql(query, dict(params))


def _postgres(connection: sa.Connection, described: Mapping[str, PolledTable]) -> dict[str, TableIdentity]:
    session = _Session(connection)
    tables = [
        PostgresTable(oid, namespace, name, described[table_name(namespace, name)].schema)
        for namespace, name, oid in session.execute(OIDS, in_sql(described))
    ]
    domains = {oid: (base, typmod) for oid, base, typmod in session.execute(DOMAINS, {})}
    return {name: _as_polled(identity) for name, identity in read_postgres(session, tables, domains).items()}


def _as_polled(identity: TableIdentity) -> TableIdentity:
    """A poll does not find the value of a new column in old rows, so ``in_rows`` is set. A partition that is detached
    and attached again gets another identity, because it may have other rows with old timestamps. What was changed and
    changed back since the last poll has no effect on the rows that it reads."""
    columns = {name: replace(column, filled=False, in_rows=True) for name, column in identity.columns.items()}
    return replace(identity, columns=columns, partitions=dict(_partitions(identity)), label_versions={}, key="")


def _partitions(identity: TableIdentity) -> Iterator[tuple[str, TablePartition]]:
    for oid, partition in identity.partitions.items():
        yield (f"{oid}@{partition.joined}" if partition.joined else oid), partition
