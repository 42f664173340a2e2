"""What ``check`` and each run ask of the server, because it changes what a copy gets without an error: filters of the
binlog, and the indexes under the keys of the YAML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.connectors.declared_keys import declared_key_problem
from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

NO_SUCH_STATEMENT = 1064
UNIQUE_KEYS = """
SELECT table_schema, table_name, index_name, column_name, nullable FROM information_schema.statistics
WHERE non_unique = 0 AND table_schema IN ({}) ORDER BY 1, 2, 3, seq_in_index
"""
FILTERED = "SRC171"


def watched_problems(connection: Any, tasks: Sequence[TableTask], location: str) -> dict[str, Problem]:
    """The first problem of each table, by its name in the definition."""
    filters = read_filters(connection)
    declared = [task for task in tasks if task.rule.key]
    unique = read_unique_keys(connection, {_database(task) for task in declared}) if declared else {}
    problems = {
        task.source_table: filter_problem(filters, task, location)
        or declared_key_problem(task, unique.get(task.name_in_source, ()), _statements(task))
        for task in tasks
    }
    return {table: problem for table, problem in problems.items() if problem}


def read_filters(connection: Any) -> tuple[frozenset[str], frozenset[str]]:
    """The databases that the server writes to its binlog alone (all if there is none), and those that it leaves out."""
    import pymysql

    try:
        rows = fetch_all(connection, "SHOW BINARY LOG STATUS")
    except pymysql.ProgrammingError as error:
        if error.args[0] != NO_SUCH_STATEMENT:
            raise
        rows = fetch_all(connection, "SHOW MASTER STATUS")
    do, ignore = (rows[0][2], rows[0][3]) if rows else ("", "")
    return _names(do), _names(ignore)


def filter_problem(filters: tuple[frozenset[str], frozenset[str]], task: TableTask, location: str) -> Problem | None:
    only, without = filters
    database = _database(task)
    if database not in without and (not only or database in only):
        return None
    setting = "binlog_ignore_db" if database in without else "binlog_do_db"
    return Problem(
        FILTERED,
        f"the server does not write changes of database {database} to its binlog",
        location,
        f"{setting} = {', '.join(sorted(without if database in without else only))}",
        "no filter of the binlog",
        f"remove {setting} from the server's configuration, restart the server, then resync the table",
        "changes made with the filter are in no log",
    )


def read_unique_keys(connection: Any, databases: set[str]) -> dict[str, list[list[str]]]:
    """Table → the columns of each unique index without nullable columns and without expressions."""
    places = ", ".join(["%s"] * len(databases))
    indexes = defaultdict[tuple[str, str], list[tuple[Any, Any]]](list)
    for database, table, index, column, nullable in fetch_all(
        connection, UNIQUE_KEYS.format(places), sorted(databases)
    ):
        indexes[f"{database}.{table}", index].append((column, nullable))
    keys = defaultdict[str, list[list[str]]](list)
    for (table, _), columns in indexes.items():
        if all(column and nullable != "YES" for column, nullable in columns):
            keys[table].append([str(column) for column, _ in columns])
    return keys


def _statements(task: TableTask) -> str:
    key = ", ".join(f"`{name}`" for name in task.rule.key)
    return f"ALTER TABLE {task.name_in_source} ADD UNIQUE ({key}); and NOT NULL for each of these columns"


def _database(task: TableTask) -> str:
    return task.name_in_source.partition(".")[0]


def _names(text: Any) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in str(text or "").split(","))))
