"""Keys of the YAML, compared with the unique indexes of their tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from airflow_cdc_provider.connectors.declared_keys import declared_key_problem
from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all, name_in_sql
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.table.source_names import parts_of, table_name

UNIQUE_KEYS = """
SELECT table_schema, table_name, index_name, column_name, nullable FROM information_schema.statistics
WHERE non_unique = 0 AND table_schema IN ({}) ORDER BY 1, 2, 3, seq_in_index
"""


def declared_key_problems(connection: Any, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    declared = [task for task in tasks if task.rule.key]
    databases = sorted({parts_of(task.name_in_source)[0] for task in declared})
    unique = _unique_keys(connection, databases) if declared else {}
    for task in declared:
        key = ", ".join(f"`{name}`" for name in task.rule.key)
        table = name_in_sql(task.name_in_source)
        do = f"ALTER TABLE {table} ADD UNIQUE ({key}); and NOT NULL for each of these columns"
        if problem := declared_key_problem(task, unique.get(task.name_in_source, ()), do):
            yield from of_table(task.table, [problem])


def _unique_keys(connection: Any, databases: Sequence[str]) -> dict[str, list[list[str]]]:
    """Table → the columns of each unique index without nullable columns and without expressions."""
    query = UNIQUE_KEYS.format(", ".join(["%s"] * len(databases)))
    indexes = defaultdict[tuple[str, str], list[tuple[Any, Any]]](list)
    for database, table, index, column, nullable in fetch_all(connection, query, databases):
        indexes[table_name(database, table), index].append((column, nullable))
    keys = defaultdict[str, list[list[str]]](list)
    for (table, _), columns in indexes.items():
        if all(column and nullable != "YES" for column, nullable in columns):
            keys[table].append([str(column) for column, _ in columns])
    return keys
