"""Tables that no run copies as they are now: of another kind, with columns that cannot be read, that the login may not
select, or whose changes the binlog leaves out. ``check`` and each run ask the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.casts import cast_problems
from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.mysql.alterations import LOGGING_ENGINES
from airflow_cdc_provider.connectors.sources.mysql.binlog_filters import filtered_problems
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, name_in_sql, read_server, read_user
from airflow_cdc_provider.connectors.sources.mysql.grants import grant_problems, limited_tables
from airflow_cdc_provider.connectors.sources.mysql.server_charsets import convertible
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn, is_known, is_old_fraction
from airflow_cdc_provider.connectors.sources.mysql.unique_keys import declared_key_problems
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table

ZERO_DATES = "correct `where`; zero dates sort first: `>= '0001-01-01'` excludes them, `< '0001-01-01'` selects them"
BASE_TABLE, VERSIONED = "BASE TABLE", "SYSTEM VERSIONED"


def refused_problems(
    connection: Any, server: str, tasks: Sequence[TableTask], tables: Mapping[str, CatalogTable]
) -> Iterator[Problem]:
    """``server``: as problems name it. ``tables``: the catalog. A missing table is none of these problems."""
    found = [(task, table) for task in tasks if (table := tables.get(task.name_in_source))]
    mariadb, user = read_server(connection).is_mariadb, read_user(connection)
    limited = limited_tables(connection, (table for _, table in found), mariadb)
    charsets = {column.charset for task, table in found for column in _copied(task, table) if column.charset}
    known = convertible(connection, charsets)
    for task, table in found:
        kind = list(_kind_problems(task, table))
        yield from of_table(task.table, kind)
        yield from of_table(task.table, grant_problems(task, table, table.schema.table in limited, user, server))
        if not kind:
            yield from of_table(task.table, _type_problems(task, table, mariadb))
            yield from of_table(task.table, _old_fractions(task, table))
            yield from of_table(task.table, _charset_problems(task, table, known))
            yield from of_table(task.table, _key_problems(task, table))
            yield from of_table(task.table, cast_problems(task, table.schema, ": the binlog has no text of its values"))
            yield from of_table(task.table, filter_problems(task))
    yield from filtered_problems(connection, server, tasks)
    yield from declared_key_problems(connection, tasks)


def _copied(task: TableTask, table: CatalogTable) -> list[CatalogColumn]:
    return [column for column in table.columns if column.name in task.schema.names]


def _kind_problems(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    if table.kind == VERSIONED:
        yield Problem(
            "SRC151",
            f"{task.table} keeps earlier versions of its rows, and the binlog has them as rows of the table",
            task.table,
            "WITH SYSTEM VERSIONING",
            "tables without it",
            f"ALTER TABLE {name_in_sql(table.schema.table)} DROP SYSTEM VERSIONING; or remove it from the definition",
            "nothing of it is read",
        )
    elif table.kind != BASE_TABLE or table.engine.lower() not in LOGGING_ENGINES:
        yield Problem(
            "SRC151",
            f"the rows of {task.table} may change without the binlog",
            task.table,
            f"{table.kind.lower()}, engine {table.engine or 'unknown'}",
            "tables of InnoDB, MyISAM, Aria, MEMORY, ARCHIVE, CSV, RocksDB, TokuDB, NDB",
            "remove it from the definition, or copy the tables that have its rows",
            "nothing of it is read",
        )


def _type_problems(task: TableTask, table: CatalogTable, mariadb: bool) -> Iterator[Problem]:
    unknown = [column for column in _copied(task, table) if not is_known(column, mariadb)]
    if unknown:
        yield Problem(
            "SRC152",
            f"{task.table} has columns of a type that is not read from the binlog",
            task.table,
            ", ".join(f"{column.name} ({column.column_type})" for column in unknown),
            "the types in docs/guides/mysql.md",
            "exclude the columns with `columns.exclude`",
            columns=tuple(column.name for column in unknown),
        )


def _old_fractions(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    """Each row has the bytes of all columns, whichever are copied."""
    if old := [column for column in table.columns if is_old_fraction(column)]:
        yield Problem(
            "SRC152",
            f"{task.table} has fractions of a second in a format whose length the binlog does not show",
            task.table,
            ", ".join(f"{column.name} ({column.column_type})" for column in old),
            "the format that tables get with mysql56_temporal_format = ON",
            f"SET GLOBAL mysql56_temporal_format = 'ON'; ALTER TABLE {name_in_sql(table.schema.table)} FORCE;",
            "each change of the table would be a hole",
        )


def _charset_problems(task: TableTask, table: CatalogTable, known: frozenset[str]) -> Iterator[Problem]:
    others = [column for column in _copied(task, table) if column.charset and column.charset not in known]
    if others:
        yield Problem(
            "SRC099",
            f"{task.table} has text in a character set that is not converted as this server converts it",
            where=task.table,
            found=", ".join(f"{column.name} ({column.charset})" for column in others),
            allowed="character sets of which this server has the same characters as MariaDB 10.11",
            do="exclude the columns with `columns.exclude`, or convert them to utf8mb4",
            columns=tuple(column.name for column in others),
        )


def _key_problems(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    if task.schema.key:
        return
    if not table.generated_key:
        yield _missing_key(task.table)
    else:
        yield Problem(
            "SRC153",
            f"the key of {task.table} has a generated column, which is not copied",
            task.table,
            f"key ({', '.join(table.generated_key)})",
            "a key of ordinary columns",
            "name other columns that identify a row under `key`, or add a unique key of columns that are NOT NULL",
        )


def _missing_key(table: str) -> Problem:
    return Problem(
        "SRC098",
        f"{table} has no key: the target row of a changed row cannot be identified",
        where=table,
        found="no primary key, and no unique key of columns that are NOT NULL",
        allowed="one of them, or `key` in the table's rule",
        do=f"ALTER TABLE {name_in_sql(table)} ADD PRIMARY KEY (…); or list columns that are unique under `key`",
    )


def filter_problems(task: TableTask) -> Iterator[Problem]:
    return operand_problems(task, do_for_dates=ZERO_DATES)
