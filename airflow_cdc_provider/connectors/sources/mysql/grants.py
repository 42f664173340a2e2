"""Which columns the login may select. The binlog has all columns of a table, whatever the login may read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, fetch_all, quoted
from airflow_cdc_provider.core.connections.mysql_errors import MISSING_PRIVILEGE
from airflow_cdc_provider.core.connections.mysql_session import error_code
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

GRANT = re.compile(
    r"GRANT (?P<rights>.*?) ON (?:\*\.\*|(?P<database>`(?:[^`]|``)*`)\.(?P<table>\*|`(?:[^`]|``)*`)) TO "
)
WHOLE = re.compile(r"(?:ALL PRIVILEGES|(?:.*, )?SELECT(?:,|$))")
"""A right on the whole object: one on columns has their list in parentheses."""

NO_COLUMN = "_cdc_no_column"
LOCK_LIMIT_S = 2
OF_SERVER = range(1000, 2000)
"""Codes of errors of a statement; others are those of the session."""
LOCKED = 1205


def limited_tables(connection: Any, tables: Iterable[CatalogTable], mariadb: bool) -> frozenset[str]:
    """Those of which the login may select some columns only, or none. The catalog does not show the others."""
    granted = whole_grants(_grants(connection, mariadb))
    unproven = [table for table in tables if not granted.fullmatch(_text(table.database, table.name))]
    if unproven:
        fetch_all(connection, f"SET SESSION lock_wait_timeout = {LOCK_LIMIT_S}")
    return frozenset(table.schema.table for table in unproven if _is_limited(connection, table))


def whole_grants(grants: Iterable[str]) -> re.Pattern[str]:
    """Matches the tables that may be selected as a whole, as database, zero byte and name. ``grants``: as the server
    shows them."""
    found = [match for grant in grants if (match := GRANT.match(grant)) and WHOLE.match(match["rights"])]
    return re.compile("|".join(["(?!)", *(_pattern(match) for match in found)]), re.DOTALL)


def _grants(connection: Any, mariadb: bool) -> list[str]:
    """With those of the active roles, which MariaDB shows by itself."""
    ((role,),) = fetch_all(connection, "SELECT CURRENT_ROLE()")
    using = "" if mariadb or role in (None, "NONE") else f" FOR CURRENT_USER() USING {role}"
    return [str(grant) for (grant,) in fetch_all(connection, f"SHOW GRANTS{using}")]


def _pattern(granted: re.Match[str]) -> str:
    """The name of a database is a pattern, unless the grant is on a table."""
    if granted["database"] is None:
        return ".*"
    database, table = (name[1:-1].replace("``", "`") for name in granted.group("database", "table"))
    if granted["table"] != "*":
        return re.escape(_text(database, table))
    parts = re.findall(r"\\.|.", database, re.DOTALL)
    wildcards = {"%": ".*", "_": "."}
    return "".join(wildcards.get(part) or re.escape(part[-1]) for part in parts) + r"\0.*"


def _text(database: str, table: str) -> str:
    return f"{database}\0{table}"


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
    """The server says that a column does not exist only to a login that may select all columns. A locked table counts
    as limited until the next run; one that the server cannot open has another problem."""
    name = f"{quoted(table.database)}.{quoted(table.name)}"
    try:
        fetch_all(connection, f"SELECT t.*, t.{NO_COLUMN} FROM {name} AS t LIMIT 0")
    # The driver is imported by the client only.
    except Exception as error:
        if error_code(error) not in OF_SERVER:
            raise
        return error_code(error) in MISSING_PRIVILEGE | {LOCKED}
    return False
