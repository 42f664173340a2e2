"""What the server says: which server it is, where its binlog stands, which tables there are and of what columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.positions import number_of
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.core.table.schema import TableSchema

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
NO_SUCH_STATEMENT = 1064

COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, lower(c.data_type), lower(c.column_type), c.column_type,
       c.is_nullable = 'YES', coalesce(c.character_set_name, ''), coalesce(c.character_octet_length, 0),
       coalesce(c.numeric_precision, 0), coalesce(c.numeric_scale, 0), coalesce(c.datetime_precision, 0),
       lower(c.extra) LIKE '%% generated%%',
       coalesce(c.column_default, 'NULL') <> 'NULL' OR c.is_nullable = 'NO'
FROM information_schema.columns c
JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' AND c.table_schema {where}
ORDER BY c.table_schema, c.table_name, c.ordinal_position
"""

# The primary key comes first by its name; then keys that are unique and whose columns are never NULL.
KEYS = """
SELECT table_schema, table_name, index_name, column_name FROM information_schema.statistics
WHERE non_unique = 0 AND table_schema {where}
ORDER BY table_schema, table_name, index_name <> 'PRIMARY', index_name, seq_in_index
"""


@dataclass(frozen=True)
class CatalogTable:
    """``schema`` leaves generated columns out."""

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    schema: TableSchema


@dataclass(frozen=True)
class ServerFacts:
    """``identity``: what makes this server this server."""

    version: str
    identity: dict[str, str]

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.version.lower()


def ask(connection: Any, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(query, tuple(parameters) or None)
    return list(cursor.fetchall())


def variables(connection: Any, *names: str) -> dict[str, str]:
    """Of those that this server has."""
    marks = ", ".join(["%s"] * len(names))
    found = ask(connection, f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({marks})", names)
    return {str(name).lower(): str(value) for name, value in found}


def read_server(connection: Any) -> ServerFacts:
    (row,) = ask(connection, "SELECT VERSION()")
    told = variables(connection, "server_uuid", "server_id", "gtid_domain_id")
    names = ("server_uuid",) if "server_uuid" in told else ("gtid_domain_id", "server_id")
    return ServerFacts(str(row[0]), {name: told.get(name, "") for name in names})


@dataclass(frozen=True)
class End:
    """Where the binlog ends now; always the end of a transaction."""

    file: str
    pos: int


def read_end(connection: Any, client: MysqlClient) -> End:
    """Raises PositionLost where there is no binlog."""
    import pymysql

    try:
        found = ask(connection, "SHOW BINARY LOG STATUS")
    except pymysql.ProgrammingError as error:
        if error.args[0] != NO_SUCH_STATEMENT:
            raise
        found = ask(connection, "SHOW MASTER STATUS")
    if not found:
        raise client.lost("the server writes no binlog (log_bin = OFF)")
    return End(str(found[0][0]), int(found[0][1]))


def read_files(connection: Any) -> dict[str, int]:
    """The files that are still there, in order, with their sizes in bytes."""
    found = ask(connection, "SHOW BINARY LOGS")
    return dict(sorted(((str(row[0]), int(row[1])) for row in found), key=lambda file: number_of(file[0])))


def read_collations(connection: Any, server: ServerFacts) -> dict[int, str]:
    """Number of a collation -> its character set."""
    source = "collation_character_set_applicability" if server.is_mariadb else "collations"
    if server.is_mariadb and not ask(
        connection,
        "SELECT 1 FROM information_schema.columns WHERE table_schema = 'information_schema' "
        "AND table_name = 'COLLATION_CHARACTER_SET_APPLICABILITY' AND column_name = 'ID'",
    ):
        source = "collations"
    found = ask(connection, f"SELECT id, character_set_name FROM information_schema.{source} WHERE id IS NOT NULL")
    return {int(number): str(name) for number, name in found}


def read_tables(connection: Any, databases: Sequence[str]) -> dict[str, CatalogTable]:
    """``database.table`` -> table; of these databases, or of all that are not the server's own."""
    names = list(databases) or list(SYSTEM)
    where = f"{'IN' if databases else 'NOT IN'} ({', '.join(['%s'] * len(names))})"
    keys: dict[tuple[str, str], list[list[str]]] = {}
    for (database, name, _), rows in groupby(ask(connection, KEYS.format(where=where), names), key=lambda row: row[:3]):
        keys.setdefault((database, name), []).append([row[3] for row in rows])
    found = groupby(ask(connection, COLUMNS.format(where=where), names), key=lambda row: row[:2])
    tables = (_table(place, list(rows), keys.get(place, [])) for place, rows in found)
    return {table.schema.table: table for table in tables}


def _table(place: tuple[str, str], rows: list[tuple[Any, ...]], keys: list[list[str]]) -> CatalogTable:
    columns = tuple(_column(row) for row in rows)
    kept = tuple(column.column for column in columns if not column.generated)
    firm = {column.name for column in columns if not column.nullable and not column.generated}
    key = next((tuple(names) for names in keys if firm.issuperset(names)), ())
    return CatalogTable(*place, columns, TableSchema(f"{place[0]}.{place[1]}", kept, key))


def _column(row: tuple[Any, ...]) -> CatalogColumn:
    _, _, name, kind, lowered, written, nullable, charset, octets, precision, scale, fraction, generated, default = row
    return CatalogColumn(
        name,
        kind,
        written if kind in ("enum", "set") else lowered,
        bool(nullable),
        charset,
        int(octets),
        (int(precision), int(scale)),
        int(fraction),
        bool(generated),
        bool(default),
    )


Tables = Mapping[str, CatalogTable]
