"""Every obstacle at once, each with its cure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, index_leads, read_catalogue
from airflow_cdc_provider.connectors.sources.jdbc_poll.database import Database
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.jdbc_poll.select import SPELLED, Selectable
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Kind

NOT_CAST = frozenset({Kind.FLOAT32, Kind.FLOAT64, Kind.BYTES})
MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def stamp_of(described: PolledTable, options: JdbcPollOptions) -> str:
    """The column that tells of changes. Raises CheckFailed (SRC062) where the table has no such moment."""
    table = described.schema.table
    name = options.timestamp_columns.get(table, options.timestamp_column)
    if name not in described.schema.names:
        raise CheckFailed(_no_column(table, name, "no such column"))
    kind = described.schema.column(name).type.kind
    if kind not in MOMENTS:
        raise CheckFailed(_no_column(table, name, f"a column of type {kind}"))
    return name


def find_problems(database: Database, tables: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable where the database cannot be reached; a refused login is one of the problems."""
    problems: list[Problem] = []
    options = database.options
    try:
        with database.session() as connection:
            catalogue = read_catalogue(connection, options.schemas)
            for name in sorted(options.timestamp_columns.keys() - catalogue.keys()):
                problems.append(_no_table(name))
            for task in tables:
                described = catalogue[task.table]
                try:
                    stamp = stamp_of(described, options)
                except CheckFailed as error:
                    problems += error.problems
                    continue
                selectable = Selectable(described, task.schema, stamp, options.offset, database.system)
                problems += _key_problems(selectable)
                if not index_leads(connection, described, stamp):
                    problems.append(_no_index(described, stamp))
                if options.key_audit is None and task.rule.on_delete is not OnDelete.IGNORE:
                    problems.append(_deletes_unseen(task.table))
    except CheckFailed as error:
        problems += error.problems
    return problems


def refuse(selectable: Selectable, database: Database) -> None:
    """Raises CheckFailed where the table cannot be read page by page."""
    problems = list(_key_problems(selectable))
    if problems:
        raise CheckFailed(*problems)


def _key_problems(selectable: Selectable) -> Iterator[Problem]:
    schema = selectable.schema
    if not schema.key:
        yield Problem(
            "SRC063",
            f"{schema.table} has no key: which row of the target a changed row is cannot be told",
            where=schema.table,
            found="no primary key",
            allowed="a primary key, or `key` in the table's rule",
            do="name columns that are unique and not NULL under `key`",
        )
    yield from _spelled(selectable)
    nullable = [name for name in schema.key if name in selectable.described.nullable]
    if nullable:
        yield Problem(
            "SRC063",
            f"the key of {schema.table} may be NULL: pages of rows have no order by it",
            where=schema.table,
            found=", ".join(nullable),
            allowed="key columns that are declared NOT NULL",
            do="declare them so, or name others under `key`",
        )


def _spelled(selectable: Selectable) -> Iterator[Problem]:
    """Other systems print dates and numbers as their settings say."""
    source, system = selectable.described.schema, selectable.system
    mysql = system in ("mysql", "mariadb")
    for column in selectable.schema.columns:
        asked = column.text_of or (column.name if selectable.is_cast(column.name) else "")
        if not asked or (system in SPELLED and not (mysql and source.column(asked).type.kind in NOT_CAST)):
            continue
        yield Problem(
            "SRC105",
            f"column {asked} of {source.table} has no exact text",
            where=f"{source.table}.{asked}",
            found=f"`{'on_unrepresentable' if column.text_of else 'columns.cast'}` of {column.native or system}",
            allowed="columns of PostgreSQL; of MySQL and MariaDB all but floating numbers and bytes",
            do="remove it, or leave the column out",
        )


def _no_column(table: str, name: str, found: str) -> Problem:
    return Problem(
        "SRC062",
        f"nothing tells which rows of {table} were changed",
        where=f"{table}.{name}",
        found=found,
        allowed="a column of date and time that every change sets",
        do=f"name one under `timestamp_columns` of the source: `{table}: …`",
    )


def _no_table(name: str) -> Problem:
    return Problem(
        "SRC062",
        "`timestamp_columns` names a table that is not there, or is hidden",
        where=name,
        do="mend the name (`schema.table`), or add its schema to `schemas`",
    )


def _no_index(described: PolledTable, stamp: str) -> Problem:
    table = described.schema.table
    return Problem(
        "SRC064",
        f"no index of {table} begins with {stamp}: every question about changes reads the whole table",
        where=f"{table}.{stamp}",
        found="no index",
        do=f"CREATE INDEX ON {table} ({stamp}) where the table is large; copies are right without it, and slow",
    )


def _deletes_unseen(table: str) -> Problem:
    return Problem(
        "SRC065",
        f"rows that are deleted from {table} stay in the target",
        where=table,
        found="no `key_audit` under `source`",
        do="key_audit: 1d under `source`; where no row is ever deleted: on_delete: ignore in the table's rule",
    )
