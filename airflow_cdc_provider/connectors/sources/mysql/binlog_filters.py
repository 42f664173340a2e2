"""Databases that the server leaves out of its binlog: their changes are in no log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import binlog_status
from airflow_cdc_provider.core.connections.mysql_errors import MISSING_PRIVILEGE
from airflow_cdc_provider.core.connections.mysql_session import error_code
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.table.source_names import parts_of

FILTERED = "SRC171"


@dataclass(frozen=True)
class BinlogFilters:
    """``only``: the databases that it contains; all if there is none. ``without``: those that it leaves out."""

    only: frozenset[str]
    without: frozenset[str]

    def setting(self, database: str) -> str:
        """The setting that leaves the database out; empty if none does."""
        if database in self.without:
            return f"binlog_ignore_db = {', '.join(sorted(self.without))}"
        return f"binlog_do_db = {', '.join(sorted(self.only))}" if self.only and database not in self.only else ""


def filtered_tables(connection: Any, tasks: Sequence[TableTask]) -> dict[str, str]:
    """The tables that the binlog leaves out, with the setting. A login that may not see the status cannot read the
    binlog, either: other checks report that."""
    import pymysql

    try:
        rows = binlog_status(connection)
    except pymysql.Error as error:
        if error_code(error) not in MISSING_PRIVILEGE:
            raise
        return {}
    filters = BinlogFilters(*(_names(text) for text in rows[0][2:4])) if rows else BinlogFilters(_NONE, _NONE)
    found = {task.table: filters.setting(parts_of(task.name_in_source)[0]) for task in tasks}
    return {table: setting for table, setting in found.items() if setting}


def filtered_problems(connection: Any, server: str, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    filtered = filtered_tables(connection, tasks)
    for task in tasks:
        database = parts_of(task.name_in_source)[0]
        if setting := filtered.get(task.table):
            problem = Problem(
                FILTERED,
                f"the server does not write changes of database {database} to its binlog",
                server,
                setting,
                "no filter of the binlog",
                f"remove {setting.partition(' ')[0]} from the server's configuration, restart the server, then resync "
                "the table",
                "changes made with the filter are in no log",
            )
            yield from of_table(task.table, [problem])


_NONE = frozenset[str]()


def _names(text: Any) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in str(text or "").split(","))))
