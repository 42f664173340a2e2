"""Foreign keys whose actions change rows. The binlog contains these changes only if the server carries the actions out,
as MySQL does since 9.6. By default the engine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, fetch_all, name_in_sql, read_variables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, raise_problems
from airflow_cdc_provider.core.table.source_names import table_name

ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")
FOREIGN_KEYS = """
SELECT constraint_schema, table_name, constraint_name, referenced_table_name, delete_rule, update_rule
FROM information_schema.referential_constraints WHERE (delete_rule IN %s OR update_rule IN %s)
"""
ORDERED = " ORDER BY constraint_schema, table_name, constraint_name"
OF_ONE_TABLE = " AND constraint_schema = %s AND table_name = %s"
BY_ENGINE = "innodb_native_foreign_keys"
"""Whether the engine carries the actions out. Without this variable, it does."""


def cascade_problems(connection: Any, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    ours = {task.name_in_source for task in tasks}
    if _are_logged(connection):
        return
    for row in fetch_all(connection, FOREIGN_KEYS + ORDERED, (ACTIONS, ACTIONS)):
        if table_name(row[0], row[1]) in ours:
            yield _problem(*row)


def refuse_cascades(connection: Any, table: CatalogTable) -> None:
    """Raises CheckFailed (SRC104). The statement that adds a foreign key later is in the binlog."""
    if _are_logged(connection):
        return
    query = FOREIGN_KEYS + OF_ONE_TABLE + ORDERED
    rows = fetch_all(connection, query, (ACTIONS, ACTIONS, table.database, table.name))
    # The catalog of MariaDB compares names without case.
    raise_problems(_problem(*row) for row in rows if row[1] == table.name)


def _are_logged(connection: Any) -> bool:
    return read_variables(connection, BY_ENGINE).get(BY_ENGINE) == "OFF"


def _problem(database: str, name: str, constraint: str, parent: str, on_delete: str, on_update: str) -> Problem:
    table = table_name(database, name)
    return Problem(
        "SRC104",
        f"a foreign key changes rows of {table} when rows of {parent} change, and the binlog does not contain this",
        where=table,
        found=f"foreign key {constraint} ON DELETE {on_delete} ON UPDATE {on_update}",
        allowed="foreign keys with RESTRICT or NO ACTION",
        do=f"ALTER TABLE {name_in_sql(table)} DROP FOREIGN KEY {constraint}; add it without CASCADE and SET NULL, and "
        "change the rows in the application or in a trigger",
        table=table,
    )
