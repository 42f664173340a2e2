"""What the server says about itself: its database, the tables, and the capture instances with their change tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

from airflow_cdc_provider.connectors.copied.altered_tables import altered_meanwhile
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.client import Session
from airflow_cdc_provider.connectors.sources.sqlserver.positions import lsn_of
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn, quoted
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.table.schema import Regime, TableSchema
from airflow_cdc_provider.core.table.source_names import table_name
from airflow_cdc_provider.core.table.table_size import TableSize

CLUSTERED = 1
"""The type of a clustered index in ``sys.indexes``."""


@dataclass(frozen=True)
class Database:
    """``snapshots``: snapshot isolation is allowed. ``utc_offset_minutes``: of the server's local time now."""

    name: str
    collation: str
    captures: bool
    snapshots: bool
    version: int
    edition: int
    user: str
    utc_offset_minutes: int


@dataclass(frozen=True)
class CatalogTable:
    """``last_number``: the highest ``column_id`` that a column of the table ever had. ``schema`` has no computed
    columns. ``clustered``: its key is that of the clustered index. ``unique_keys``: the columns of each unique index
    that may not be NULL. ``partitioned``: it has several partitions, whose rows a switch moves."""

    namespace: str
    name: str
    object_id: int
    created: str
    last_number: int
    columns: tuple[SqlColumn, ...]
    schema: TableSchema
    clustered: bool
    unique_keys: tuple[tuple[str, ...], ...]
    partitioned: bool

    @property
    def sql(self) -> str:
        return f"{quoted(self.namespace)}.{quoted(self.name)}"

    def find(self, name: str) -> SqlColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    def selected(self, schema: TableSchema) -> list[SqlColumn]:
        """The columns that a copy of this schema is read from. Raises SourceUnavailable (CPY012) if one is missing: it
        was dropped after the run had read the catalog."""
        names = dict.fromkeys(column.text_of or column.name for column in schema.columns)
        found = [column for name in names if (column := self.find(name))]
        if len(found) < len(names):
            missing = [name for name in names if self.find(name) is None]
            raise altered_meanwhile(schema.table, f"no column {', '.join(missing)}")
        return found


@dataclass(frozen=True)
class CaptureInstance:
    """``source_id``: of the captured table. ``start``: changes with this or a higher commit LSN are in the change
    table; None if the server has not determined it yet. ``columns``: as in the change table, with the numbers of the
    captured columns. ``switches``: partitions may be switched, which is not captured."""

    source_id: int
    object_id: int
    name: str
    start: int | None
    created: str
    columns: tuple[SqlColumn, ...]
    switches: bool = False

    @property
    def change_table(self) -> str:
        return f"{self.name}_CT"

    def misses_switches(self, table: CatalogTable) -> bool:
        """Whether the server lets a switch move rows of the table, which no change table has then."""
        return self.switches and table.partitioned

    def captures(self, column: SqlColumn) -> bool:
        """Whether this very column is captured, not a former one of the same name."""
        return any((own.name, own.number) == (column.name, column.number) for own in self.columns)


@dataclass(frozen=True)
class Described:
    """What the problems of tables are found in. ``instances``: by object id of the table, oldest first.
    ``code_pages``: by collation."""

    database: Database
    tables: Mapping[str, CatalogTable]
    instances: Mapping[int, tuple[CaptureInstance, ...]]
    code_pages: Mapping[str, int]

    def instances_of(self, table: CatalogTable) -> tuple[CaptureInstance, ...]:
        return self.instances.get(table.object_id, ())


def read_described(session: Session, database: Database, schemas: Sequence[str]) -> Described:
    """Of a database that captures changes."""
    tables, instances = read_tables(session, schemas), read_instances(session)
    code_pages = {str(name): int(page) for name, page in session.rows(queries.CODE_PAGES)}
    return Described(database, tables, instances, code_pages)


def read_database(session: Session) -> Database:
    (row,) = session.rows(queries.DATABASE)
    name, collation, captures, snapshots, version, edition, user, offset = row
    return Database(
        name, collation, bool(captures), int(snapshots) == 1, int(version or 0), int(edition), user, int(offset)
    )


def read_tables(session: Session, schemas: Sequence[str]) -> dict[str, CatalogTable]:
    """``schema.table`` → table, of these schemas, or of all that the login can see."""
    keys: dict[int, list[tuple[bool, tuple[str, ...]]]] = {}
    for (object_id, _, kind), rows in groupby(session.rows(queries.KEYS), key=lambda row: row[:3]):
        keys.setdefault(object_id, []).append((kind == CLUSTERED, tuple(row[3] for row in rows)))
    partitioned = frozenset(int(row[0]) for row in session.rows(queries.PARTITIONED))
    tables = (_table(rows, keys, partitioned) for rows in _by_table(session.rows(queries.tables(schemas))))
    return {table.schema.table: table for table in tables}


def read_instances(session: Session) -> dict[int, tuple[CaptureInstance, ...]]:
    """Object id of a table → its capture instances, oldest first."""
    captured: dict[int, dict[str, tuple[int, int]]] = {}
    for object_id, name, number, ordinal in session.rows(queries.CAPTURED_COLUMNS):
        captured.setdefault(object_id, {})[name] = (number, ordinal)
    columns = {
        rows[0][2]: tuple(_captured(column, captured.get(rows[0][2], {})) for column in map(_column, rows))
        for rows in _by_table(session.rows(queries.change_table_columns()))
    }
    instances: dict[int, list[CaptureInstance]] = {}
    for source_id, object_id, name, start, created, switches in session.rows(queries.CHANGE_TABLES):
        known = tuple(column for column in columns.get(object_id, ()) if column.ordinal)
        lsn = lsn_of(start) if start else 0
        instances.setdefault(source_id, []).append(
            CaptureInstance(source_id, object_id, name, lsn or None, created, known, bool(switches))
        )
    return {
        source_id: tuple(sorted(found, key=lambda one: (one.start is None, one.start or 0, one.created, one.object_id)))
        for source_id, found in instances.items()
    }


def read_starts(session: Session) -> dict[int, int]:
    """Object id of a change table → its ``start``, 0 if the server has not determined it yet."""
    return {object_id: lsn_of(start) if start else 0 for object_id, start in session.rows(queries.STARTS)}


def read_sizes(session: Session, tables: Iterable[CatalogTable]) -> dict[str, TableSize]:
    """Exact but for changes in flight. Raises CheckFailed without VIEW DATABASE STATE."""
    sizes = {object_id: TableSize(int(rows), int(size)) for object_id, rows, size in session.rows(queries.SIZES)}
    return {table.schema.table: sizes[table.object_id] for table in tables if table.object_id in sizes}


def _by_table(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    for _, group in groupby(rows, key=lambda row: row[2]):
        yield list(group)


def _table(
    rows: list[tuple[Any, ...]],
    keys: Mapping[int, Sequence[tuple[bool, tuple[str, ...]]]],
    partitioned: frozenset[int],
) -> CatalogTable:
    """``keys``: by object id. ``partitioned``: object ids."""
    namespace, name, object_id, created, last_number = rows[0][:5]
    columns = tuple(map(_column, rows))
    copied = tuple(column.column for column in columns if not column.computed)
    required = {column.name for column in copied if not column.nullable}
    usable = [one for one in keys.get(object_id, ()) if required.issuperset(one[1])]
    clustered, key = next(iter(usable), (False, ()))
    schema = TableSchema(table_name(namespace, name), copied, key, Regime.DOUBLE)
    unique = tuple(columns for _, columns in usable)
    return CatalogTable(
        namespace,
        name,
        object_id,
        created,
        int(last_number),
        columns,
        schema,
        clustered,
        unique,
        object_id in partitioned,
    )


def _column(row: tuple[Any, ...]) -> SqlColumn:
    number, name, kind, length, precision, scale, nullable, collation, computed, filled, special = row[5:]
    return SqlColumn(
        int(number),
        name,
        kind,
        int(length),
        int(precision),
        int(scale),
        bool(nullable),
        collation,
        bool(computed),
        bool(filled),
        bool(special),
    )


def _captured(column: SqlColumn, captured: Mapping[str, tuple[int, int]]) -> SqlColumn:
    """A column of a change table with the number and the ordinal of the captured column. Ordinal 0: a column of the
    change table itself."""
    number, ordinal = captured.get(column.name, (0, 0))
    return replace(column, number=int(number), ordinal=int(ordinal))


def read_retention(session: Session) -> timedelta | None:
    """How long changes stay in the change tables; None if the login has no rights in msdb."""
    try:
        minutes = next(session.rows(queries.CAPTURE_JOB), None)
    except CheckFailed:
        return None
    return timedelta(minutes=int(minutes[0])) if minutes is not None else None
