"""Foreign keys by which the engine changes rows that no binlog tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_cdc_provider.connectors.mysql.catalog import ask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.steps import TableTask

CHANGING = ("CASCADE", "SET NULL", "SET DEFAULT")
FOREIGN_KEYS = """
SELECT constraint_schema, table_name, constraint_name, referenced_table_name, delete_rule, update_rule
FROM information_schema.referential_constraints WHERE delete_rule IN %s OR update_rule IN %s
ORDER BY constraint_schema, table_name, constraint_name
"""


def cascade_problems(connection: Any, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    ours = {task.table for task in tasks}
    for database, name, constraint, parent, on_delete, on_update in ask(connection, FOREIGN_KEYS, (CHANGING, CHANGING)):
        table = f"{database}.{name}"
        if table in ours:
            yield Problem(
                "SRC104",
                f"rows of {table} change with those of {parent}, and the binlog does not tell it",
                where=table,
                found=f"foreign key {constraint} ON DELETE {on_delete} ON UPDATE {on_update}",
                allowed="foreign keys with RESTRICT or NO ACTION",
                do=f"ALTER TABLE {table} DROP FOREIGN KEY {constraint}; add it without CASCADE and SET NULL, and let "
                "the application or a trigger change the rows",
            )
