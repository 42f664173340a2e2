"""Queries of the server's metadata: its identity, the end of its binlog, its tables and their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.positions import file_number
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.core.connections.mysql_errors import MISSING_PRIVILEGE
from airflow_cdc_provider.core.connections.mysql_session import error_code
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import parts_of, schema_and_table, table_name
from airflow_cdc_provider.core.table.table_size import TableSize

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
NO_SUCH_STATEMENT = 1064
UNKNOWN_DATABASE, NO_SUCH_TABLE = 1049, 1146

OTHER_KINDS = {
    "VIEW": "a view",
    "SYSTEM VIEW": "a view",
    "SEQUENCE": "a sequence",
    "TEMPORARY": "a temporary table",
    "TEMPORARY SEQUENCE": "a temporary sequence",
}
"""Types of ``information_schema.tables`` that are no tables with rows of their own. Every other one is a table."""

OTHERS = """
SELECT table_schema, table_name, table_type FROM information_schema.tables
WHERE table_type IN {others} AND table_schema {where}
"""

COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, lower(c.data_type), lower(c.column_type), c.column_type,
       c.is_nullable = 'YES', coalesce(c.character_set_name, ''), coalesce(c.character_octet_length, 0),
       coalesce(c.numeric_precision, 0), coalesce(c.numeric_scale, 0), coalesce(c.datetime_precision, 0),
       lower(c.extra) LIKE '%% generated%%',
       coalesce(c.column_default, 'NULL') <> 'NULL' OR c.is_nullable = 'NO', c.privileges LIKE '%%select%%',
       t.table_type, coalesce(t.engine, '')
FROM information_schema.columns c
JOIN information_schema.tables t ON {joined}
WHERE t.table_type NOT IN {others} AND c.table_schema {where}
ORDER BY c.table_schema, c.table_name, c.ordinal_position
"""

# The primary key comes first, then unique keys by name.
KEYS = """
SELECT table_schema, table_name, index_name, column_name FROM information_schema.statistics s
WHERE {one} AND non_unique = 0 AND table_schema {where}
ORDER BY table_schema, table_name, index_name <> 'PRIMARY', index_name, seq_in_index
"""

SAME_CASE = "CAST(t.table_name AS BINARY) = CAST(c.table_name AS BINARY)"
"""MariaDB compares names of the catalog without their case."""

JOINED = f"t.table_schema = c.table_schema AND t.table_name = c.table_name AND {SAME_CASE}"
ONE = "{0}.table_schema = %s AND {0}.table_name = %s"
ONE_JOINED = f"{ONE.format('c')} AND {ONE.format('t')} AND {SAME_CASE}"
"""MariaDB opens every table of the server for a table of the catalog whose rows no constant names select. Its optimizer
keeps them for one alone of two that ``JOINED`` joins."""

SIZES = """
SELECT table_schema, table_name, table_rows, data_length FROM information_schema.tables
WHERE (table_schema, table_name) IN %s
"""

COMMENTS = """
SELECT table_schema, table_name, column_name, column_comment FROM information_schema.columns
WHERE column_comment <> '' AND (table_schema, table_name) IN %s
"""


@dataclass(frozen=True)
class CatalogTable:
    """``schema`` has no generated columns. ``kind``: in ``information_schema``. ``generated_key``: the key that it
    would have with them."""

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    schema: TableSchema
    kind: str = "BASE TABLE"
    engine: str = "InnoDB"
    generated_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerInfo:
    """``identity``: the values by which the server is recognised."""

    version: str
    identity: dict[str, str]

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.version.lower()


def fetch_all(connection: Any, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(query, tuple(parameters) or None)
    return list(cursor.fetchall())


def read_variables(connection: Any, *names: str) -> dict[str, str]:
    """Global variables by name, without those that this server does not have."""
    marks = ", ".join(["%s"] * len(names))
    rows = fetch_all(connection, f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({marks})", names)
    return {str(name).lower(): str(value) for name, value in rows}


def read_clock(connection: Any) -> datetime:
    """The server's, in UTC."""
    [(now,)] = fetch_all(connection, "SELECT UTC_TIMESTAMP(6)")
    return datetime.fromisoformat(str(now)).replace(tzinfo=UTC)


BINLOG_RETENTION = ("binlog_expire_logs_seconds", "expire_logs_days")


def binlog_retention(variables: Mapping[str, str]) -> timedelta | None:
    """How long the server keeps a binlog file after its end, by ``BINLOG_RETENTION`` among its global variables; None
    if for ever."""
    seconds = float(variables.get("binlog_expire_logs_seconds", 0))
    seconds = seconds or float(variables.get("expire_logs_days", 0)) * 86400
    return timedelta(seconds=seconds) if seconds else None


def read_server(connection: Any) -> ServerInfo:
    (row,) = fetch_all(connection, "SELECT VERSION()")
    variables = read_variables(connection, "server_uuid", "server_id", "gtid_domain_id")
    names = ("server_uuid",) if "server_uuid" in variables else ("gtid_domain_id", "server_id")
    return ServerInfo(str(row[0]), {name: variables.get(name, "") for name in names})


@dataclass(frozen=True)
class BinlogEnd:
    """The current end of the binlog, which is the end of a transaction."""

    file: str
    pos: int


def read_user(connection: Any) -> str:
    """The login as in a statement."""
    ((user,),) = fetch_all(connection, "SELECT CURRENT_USER()")
    name, _, host = str(user).rpartition("@")
    return f"'{name}'@'{host}'"


def binlog_status(connection: Any) -> list[tuple[Any, ...]]:
    """File, position, and the databases that it contains alone or leaves out; no row if the server writes no binlog."""
    import pymysql

    try:
        return fetch_all(connection, "SHOW BINARY LOG STATUS")
    except pymysql.ProgrammingError as error:
        if error.args[0] != NO_SUCH_STATEMENT:
            raise
        return fetch_all(connection, "SHOW MASTER STATUS")


def read_binlog_end(connection: Any, client: MysqlClient) -> BinlogEnd:
    """Raises PositionLost if the server writes no binlog."""
    rows = binlog_status(connection)
    if not rows:
        raise client.position_lost("the server writes no binlog (log_bin = OFF)")
    return BinlogEnd(str(rows[0][0]), int(rows[0][1]))


def read_binlog_files(connection: Any) -> dict[str, int]:
    """The existing files, oldest first, with their sizes in bytes."""
    rows = fetch_all(connection, "SHOW BINARY LOGS")
    return dict(sorted(((str(row[0]), int(row[1])) for row in rows), key=lambda file: file_number(file[0])))


def read_collations(connection: Any, server: ServerInfo) -> dict[int, str]:
    """Collation id -> character set."""
    source = "collation_character_set_applicability" if server.is_mariadb else "collations"
    if server.is_mariadb and not fetch_all(
        connection,
        "SELECT 1 FROM information_schema.columns WHERE table_schema = 'information_schema' "
        "AND table_name = 'COLLATION_CHARACTER_SET_APPLICABILITY' AND column_name = 'ID'",
    ):
        source = "collations"
    rows = fetch_all(connection, f"SELECT id, character_set_name FROM information_schema.{source} WHERE id IS NOT NULL")
    return {int(number): str(name) for number, name in rows}


def read_tables(connection: Any, databases: Sequence[str]) -> dict[str, CatalogTable]:
    """``database.table`` -> table, of these databases, or of all except the system databases."""
    where, names = _in_databases(databases)
    keys = fetch_all(connection, KEYS.format(where=where, one="TRUE"), names)
    columns = fetch_all(connection, COLUMNS.format(where=where, joined=JOINED, others=tuple(OTHER_KINDS)), names)
    return _tables(keys, columns)


def read_table(connection: Any, databases: Sequence[str], table: str) -> CatalogTable | None:
    """One of ``read_tables``. The server opens no other table for it."""
    where, names = _in_databases(databases)
    for one in schema_and_table([table]):
        keys = fetch_all(connection, KEYS.format(where=where, one=ONE.format("s")), (*one, *names))
        query = COLUMNS.format(where=where, joined=ONE_JOINED, others=tuple(OTHER_KINDS))
        return _tables(keys, fetch_all(connection, query, (*one, *one, *names))).get(table)
    return None


def _tables(found: Sequence[tuple[Any, ...]], columns: Sequence[tuple[Any, ...]]) -> dict[str, CatalogTable]:
    """``found``: rows of ``KEYS``. ``columns``: rows of ``COLUMNS``."""
    keys: dict[tuple[str, str], list[list[str]]] = {}
    for (database, name, _), rows in groupby(_by_table(found), key=lambda row: row[:3]):
        keys.setdefault((database, name), []).append([row[3] for row in rows])
    groups = groupby(_by_table(columns), key=lambda row: row[:2])
    tables = (_table(database, name, list(rows), keys.get((database, name), [])) for (database, name), rows in groups)
    return {table.schema.table: table for table in tables}


def _by_table(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of names that differ in case only are mixed in the order of the server. The order within a table stays."""
    return sorted(rows, key=lambda row: row[:2])


def read_other_kinds(connection: Any, databases: Sequence[str]) -> dict[str, OtherKind]:
    """What these databases have beside tables."""
    where, names = _in_databases(databases)
    rows = fetch_all(connection, OTHERS.format(where=where, others=tuple(OTHER_KINDS)), names)
    return {table_name(database, name): OtherKind(OTHER_KINDS[kind]) for database, name, kind in rows}


def _in_databases(databases: Sequence[str]) -> tuple[str, list[str]]:
    """A condition with marks, and the values of the marks."""
    names = list(databases) or list(SYSTEM)
    return f"{'IN' if databases else 'NOT IN'} ({', '.join(['%s'] * len(names))})", names


def read_sizes(connection: Any, tables: Sequence[str]) -> dict[str, TableSize]:
    """From the statistics of the storage engine. InnoDB estimates the rows from a sample of pages."""
    names = tuple(schema_and_table(tables))
    found = fetch_all(connection, SIZES, (names,)) if names else []
    return {table_name(database, name): TableSize(rows, size) for database, name, rows, size in found}


def read_comments(connection: Any, tables: Sequence[str]) -> dict[str, dict[str, str]]:
    """Table → column → comment."""
    found: dict[str, dict[str, str]] = {}
    names = tuple(schema_and_table(tables))
    for database, name, column, text in fetch_all(connection, COMMENTS, (names,)) if names else []:
        found.setdefault(table_name(database, name), {})[column] = text
    return found


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def name_in_sql(table: str) -> str:
    return ".".join(map(quoted, parts_of(table)))


def exists(connection: Any, table: str) -> bool:
    """The server says that a table does not exist only to a user who may read it."""
    if not schema_and_table([table]):
        return False
    with connection.cursor() as cursor:
        try:
            cursor.execute(f"SELECT 1 FROM {name_in_sql(table)} LIMIT 0")
        # The driver is imported by the client only.
        except Exception as error:
            if error_code(error) in (NO_SUCH_TABLE, UNKNOWN_DATABASE):
                return False
            if error_code(error) in MISSING_PRIVILEGE:
                return True
            raise
    return True


def _table(database: str, name: str, rows: list[tuple[Any, ...]], keys: list[list[str]]) -> CatalogTable:
    columns = tuple(_column(row) for row in rows)
    copied = tuple(column.column for column in columns if not column.generated)
    not_null = {column.name for column in columns if not column.nullable and not column.generated}
    key = next((tuple(names) for names in keys if not_null.issuperset(names)), ())
    with_generated = not_null | {column.name for column in columns if column.generated}
    generated_key = () if key else next((tuple(names) for names in keys if with_generated.issuperset(names)), ())
    schema, (kind, engine) = TableSchema(table_name(database, name), copied, key), rows[0][-2:]
    return CatalogTable(database, name, columns, schema, kind, engine, generated_key)


def _column(row: tuple[Any, ...]) -> CatalogColumn:
    (
        _,
        _,
        name,
        kind,
        lower_case,
        original,
        nullable,
        charset,
        octets,
        precision,
        scale,
        fraction,
        generated,
        default,
        readable,
        _,
        _,
    ) = row
    return CatalogColumn(
        name,
        kind,
        original if kind in ("enum", "set") else lower_case,
        bool(nullable),
        charset,
        int(octets),
        (int(precision), int(scale)),
        int(fraction),
        bool(generated),
        bool(default),
        bool(readable),
    )
