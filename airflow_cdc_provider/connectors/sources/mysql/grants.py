"""Which columns the login may select. The binlog has all columns of a table, whatever the login may read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, fetch_all, quoted
from airflow_cdc_provider.core.connections.mysql_session import MISSING_PRIVILEGE, error_code
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

GLOBAL = """
SELECT 1 FROM information_schema.user_privileges
WHERE privilege_type = 'SELECT' AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')
"""
NO_COLUMN = "_cdc_no_column"
OF_SERVER = range(1000, 2000)
"""Codes of errors of a statement; others are those of the session."""


def limited_tables(connection: Any, tables: Iterable[CatalogTable]) -> frozenset[str]:
    """Those of which the login may select some columns only, or none. The catalog does not show the others."""
    if fetch_all(connection, GLOBAL):
        return frozenset()
    return frozenset(table.schema.table for table in tables if _is_limited(connection, table))


def may_hold_others(task: TableTask) -> bool:
    """Whether the rule also selects columns that the catalog does not show."""
    return not task.rule.columns.include


def grant_problems(task: TableTask, table: CatalogTable, limited: bool, user: str, server: str) -> Iterator[Problem]:
    """``user``: as GRANT spells it."""
    readable = [column.name for column in table.columns if column.readable]
    denied = [column.name for column in table.columns if column.name in task.schema.names and not column.readable]
    if not denied and not (limited and may_hold_others(task)):
        return
    listed = ", ".join(readable)
    found = f"SELECT on the columns {listed} only, and the binlog has all" if readable else "no SELECT"
    yield Problem(
        "SRC010",
        f"login {user} lacks SELECT on {task.table}",
        server,
        found,
        f"SELECT on the table, or `columns: {{include: [{listed}]}}`" if readable else "SELECT on the table",
        f"GRANT SELECT ON {quoted(table.database)}.{quoted(table.name)} TO {user};",
        data="no value of a column that the login may not select is written",
    )


def _is_limited(connection: Any, table: CatalogTable) -> bool:
    """The server says that a column does not exist only to a login that may select all columns. A table that it cannot
    open has another problem."""
    name = f"{quoted(table.database)}.{quoted(table.name)}"
    try:
        fetch_all(connection, f"SELECT t.*, t.{NO_COLUMN} FROM {name} AS t LIMIT 0")
    # The driver is imported by the client only.
    except Exception as error:
        if error_code(error) not in OF_SERVER:
            raise
        return error_code(error) in MISSING_PRIVILEGE
    return False
