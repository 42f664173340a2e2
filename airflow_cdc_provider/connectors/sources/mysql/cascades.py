"""Foreign keys by which the engine changes rows that no binlog tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, ask
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem

CHANGING = ("CASCADE", "SET NULL", "SET DEFAULT")
FOREIGN_KEYS = """
SELECT constraint_schema, table_name, constraint_name, referenced_table_name, delete_rule, update_rule
FROM information_schema.referential_constraints WHERE (delete_rule IN %s OR update_rule IN %s)
"""
ORDERED = " ORDER BY constraint_schema, table_name, constraint_name"
OF_ONE_TABLE = " AND constraint_schema = %s AND table_name = %s"


def cascade_problems(connection: Any, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    ours = {task.table for task in tasks}
    for row in ask(connection, FOREIGN_KEYS + ORDERED, (CHANGING, CHANGING)):
        if f"{row[0]}.{row[1]}" in ours:
            yield _problem(*row)


def refuse_cascades(connection: Any, table: CatalogTable) -> None:
    """Raises CheckFailed (SRC104). A foreign key that is added later stands in the binlog."""
    query = FOREIGN_KEYS + OF_ONE_TABLE + ORDERED
    problems = [_problem(*row) for row in ask(connection, query, (CHANGING, CHANGING, table.database, table.name))]
    if problems:
        raise CheckFailed(*problems)


def _problem(database: str, name: str, constraint: str, parent: str, on_delete: str, on_update: str) -> Problem:
    table = f"{database}.{name}"
    return Problem(
        "SRC104",
        f"rows of {table} change with those of {parent}, and the binlog does not tell it",
        where=table,
        found=f"foreign key {constraint} ON DELETE {on_delete} ON UPDATE {on_update}",
        allowed="foreign keys with RESTRICT or NO ACTION",
        do=f"ALTER TABLE {table} DROP FOREIGN KEY {constraint}; add it without CASCADE and SET NULL, and let "
        "the application or a trigger change the rows",
    )
