"""Report every problem of the source at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, has_index_on, read_catalog
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.index_statements import create_index
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import EXACT_TEXT, TableQueries
from airflow_cdc_provider.connectors.sources.jdbc_poll.server_zone import (
    UTC,
    ServerZone,
    is_other,
    is_refused,
    is_without_zone,
    read_zone,
    zone_problem,
)
from airflow_cdc_provider.connectors.sources.jdbc_poll.unique_keys import has_primary_key, key_problem
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, of_table, raise_problems
from airflow_cdc_provider.core.table.schema import Kind

INEXACT_IN_MYSQL = frozenset({Kind.FLOAT32, Kind.FLOAT64, Kind.BYTES})
TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

Differs = Callable[[ServerZone, JdbcPollOptions], bool]
"""Whether the zone of the server is another one than that of the definition."""


def named_timestamp(table: str, options: JdbcPollOptions) -> str:
    """By the definition. The table may have no such timestamp."""
    return options.timestamp_columns.get(table, options.timestamp_column)


def timestamp_column_of(described: PolledTable, options: JdbcPollOptions) -> str:
    """The column with the time of the last change. Raises CheckFailed (SRC062) if the table has no such timestamp."""
    table = described.schema.table
    name = named_timestamp(table, options)
    if name not in described.schema.names:
        raise CheckFailed(_no_timestamp_column(table, name, "no such column"))
    kind = described.schema.column(name).type.kind
    if kind not in TIMESTAMPS:
        raise CheckFailed(_no_timestamp_column(table, name, f"a column of type {kind}"))
    return name


def find_problems(database: Database, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable if the database cannot be reached. A rejected login is one of the problems."""
    problems: list[Problem] = []
    options = database.options
    try:
        with database.session() as connection:
            catalog = read_catalog(connection, options.schemas)
            for name in sorted(options.timestamp_columns.keys() - catalog.keys()):
                problems.append(_no_table(name))
            for task in tables:
                described = catalog.get(task.table)
                found = (
                    _table_problems(database, connection, task, described)
                    if described
                    else [missing_table(database, task.table)]
                )
                problems += of_table(task.table, found)
    except CheckFailed as error:
        problems += error.problems
    return problems


def _table_problems(
    database: Database, connection: Connection, task: TableTask, described: PolledTable
) -> list[Problem]:
    options = database.options
    try:
        column = timestamp_column_of(described, options)
    except CheckFailed as error:
        return list(error.problems)
    queries = TableQueries(described, task.schema, column, options.offset, database.system)
    problems = [
        *filter_problems(task, described),
        *_paging_problems(queries),
        *_catalog_problems(connection, queries, options, is_other),
    ]
    if not has_index_on(connection, described, column):
        problems.append(_no_index(connection, described, column))
    if options.key_audit is None and not task.rule.ignores_deletes:
        problems.append(_deletes_undetected(task.table))
    return problems


def filter_problems(task: TableTask, described: PolledTable) -> Iterator[Problem]:
    """Conditions are compared in the types of the source."""
    return operand_problems(replace(task, schema=described.schema))


def require_pageable(queries: TableQueries) -> None:
    """Raises CheckFailed if the table cannot be read page by page."""
    raise_problems(_paging_problems(queries))


def require_readable(database: Database, queries: TableQueries) -> None:
    """Also raises CheckFailed if the source itself shows that rows would be missed, or overwrite each other. Each run
    asks this again."""
    require_pageable(queries)
    if _is_proven(queries, database.options):
        return
    with database.session() as connection:
        raise_problems(_catalog_problems(connection, queries, database.options, is_refused))


def _is_proven(queries: TableQueries, options: JdbcPollOptions) -> bool:
    """Whether the description of the table shows that the server need not be asked."""
    described = queries.described.schema
    in_utc = options.time_zone == UTC or not is_without_zone(described, queries.timestamp_column)
    in_one_form = queries.unknown_timestamp() is None
    return in_utc and in_one_form and has_primary_key(queries.described, queries.schema)


def refused_zone(connection: Connection, queries: TableQueries, options: JdbcPollOptions) -> Problem | None:
    """The problem of timestamps in another time zone than the server's, of which rows would be missed."""
    return _zone_problem(connection, queries, options, is_refused)


def unknown_timestamp(connection: Connection, queries: TableQueries) -> Problem | None:
    """The problem of a timestamp whose row is in no interval, because its form does not tell its place in time."""
    query = queries.unknown_timestamp()
    row = None if query is None else connection.execute(query).first()
    if row is None:
        return None
    table, column = queries.schema.table, queries.timestamp_column
    return Problem(
        "SRC062",
        f"{table} has a timestamp in an unknown form: the changes of its row would never arrive",
        where=f"{table}.{column}",
        found=f"{row[0]!r:.60}",
        allowed="texts like 2026-01-31 10:00:00; T between date and time, a fraction, and Z or +00:00 are optional",
        do="write these rows in one of these forms, or name another column under `timestamp_columns`",
        data="nothing of the table was read",
    )


def _zone_problem(
    connection: Connection, queries: TableQueries, options: JdbcPollOptions, differs: Differs
) -> Problem | None:
    table, column = queries.described.schema, queries.timestamp_column
    zone = read_zone(connection) if is_without_zone(table, column) else None
    if zone is None or not differs(zone, options):
        return None
    return zone_problem(zone, options, f"{table.table}.{column}")


def _catalog_problems(
    connection: Connection, queries: TableQueries, options: JdbcPollOptions, differs: Differs
) -> list[Problem]:
    found = (
        key_problem(connection, queries.described, queries.schema),
        _zone_problem(connection, queries, options, differs),
        unknown_timestamp(connection, queries),
    )
    return [problem for problem in found if problem]


def _paging_problems(queries: TableQueries) -> Iterator[Problem]:
    schema = queries.schema
    if not schema.key:
        yield Problem(
            "SRC063",
            f"{schema.table} has no key, so changed rows cannot be matched to rows of the target",
            where=schema.table,
            found="no primary key",
            allowed="a primary key, or `key` in the table's rule",
            do="list columns that are unique and not NULL under `key`",
        )
    yield from _refused_types(queries)
    if unordered := tuple(filter(queries.has_no_order, schema.key)):
        yield Problem(
            "SRC063",
            f"the pages of {schema.table} cannot follow its key: the server sorts and compares its values in two ways",
            where=schema.table,
            found=", ".join(f"{name} ({queries.described.types[name]!r})" for name in unordered),
            allowed="numbers, texts, times and other types of the server itself; of SQLite no timestamps",
            do="list other unique columns under `key`",
        )
    yield from _inexact_casts(queries)
    nullable = [name for name in schema.key if name in queries.described.nullable]
    if nullable:
        yield Problem(
            "SRC063",
            f"the key of {schema.table} is nullable, so it does not order the pages",
            where=schema.table,
            found=", ".join(nullable),
            allowed="key columns that are declared NOT NULL",
            do="declare them NOT NULL, or list other columns under `key`",
        )


def _refused_types(queries: TableQueries) -> Iterator[Problem]:
    table, types = queries.schema.table, queries.described.types
    names = dict.fromkeys([*(column.text_of or column.name for column in queries.schema.columns), *queries.schema.key])
    if refused := tuple(filter(queries.is_refused, names)):
        yield Problem(
            "SRC118",
            f"{table} has columns of a type that cannot be copied",
            where=table,
            found=", ".join(f"{name} ({types[name]!r})" for name in refused),
            allowed=f"the types of {queries.system} that docs/guides/timestamp-windows.md lists",
            do="leave them out with `columns.exclude`, or let a column of another type hold their values",
            columns=refused,
        )


def _inexact_casts(queries: TableQueries) -> Iterator[Problem]:
    """The texts of dates and numbers in other systems depend on settings."""
    source, system = queries.described.schema, queries.system
    mysql = system in ("mysql", "mariadb")
    for column in queries.schema.columns:
        name = column.text_of or (column.name if queries.is_cast(column.name) else "")
        if not name or (system in EXACT_TEXT and not (mysql and source.column(name).type.kind in INEXACT_IN_MYSQL)):
            continue
        yield Problem(
            "SRC105",
            f"column {name} of {source.table} has no exact text",
            where=f"{source.table}.{name}",
            found=f"`{'on_unrepresentable' if column.text_of else 'columns.cast'}` of {column.native or system}",
            allowed="columns of PostgreSQL; of MySQL and MariaDB all but floating-point numbers and bytes",
            do="remove the option, or exclude the column",
            columns=(name,),
        )


def _no_timestamp_column(table: str, name: str, found: str) -> Problem:
    return Problem(
        "SRC062",
        f"{table} has no timestamp column {name}",
        where=f"{table}.{name}",
        found=found,
        allowed="a timestamp column that every change sets",
        do=f"set one under `timestamp_columns` of the source: `{table}: …`",
    )


def missing_table(database: Database, table: str) -> Problem:
    """Of one that the source has listed before."""
    return Problem(
        "SRC042",
        "the table does not exist, or is hidden from the user",
        where=table,
        found=f"schemas {', '.join(database.options.schemas) or 'by default'} of {database.location}",
        do="create the table again, or grant SELECT on it; nothing if it was dropped: the next run lists them again",
        data="nothing of the table was read",
    )


def _no_table(name: str) -> Problem:
    return Problem(
        "SRC062",
        "`timestamp_columns` names a table that does not exist, or is hidden",
        where=name,
        do="correct the name (`schema.table`), or add its schema to `schemas`",
    )


def _no_index(connection: Connection, described: PolledTable, column: str) -> Problem:
    table = described.schema.table
    return Problem(
        "SRC064",
        f"no index of {table} starts with {column}: every poll reads the whole table",
        where=f"{table}.{column}",
        found="no index",
        do=f"{create_index(connection.dialect, described, (column,))} if the table is large; copies are correct "
        "without it, but slow",
    )


def _deletes_undetected(table: str) -> Problem:
    return Problem(
        "SRC065",
        f"rows that are deleted from {table} stay in the target",
        where=table,
        found="no `key_audit` under `source`",
        do="key_audit: 1d under `source`; if rows are never deleted: ignore: [delete] in the table's rule",
    )
