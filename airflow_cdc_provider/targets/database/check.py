"""Every obstacle on the side of a database, found before a job starts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX
from airflow_cdc_provider.targets.common_checks import in_the_definition, not_ours
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql
from airflow_cdc_provider.targets.target import TargetState


class CheckedTarget(Protocol):
    """What is asked of a database target."""

    server: Server

    @property
    def sql(self) -> Sql: ...

    def locate(self, target_table: str) -> str: ...

    def look(self, cursor: Any, table: str, target_table: str) -> TargetState: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    named = [problem for task in tables for problem in _definition(target, task)]
    try:
        with target.server.session("check") as connection:
            cursor = connection.cursor()
            if found := list(target.server.complaints(cursor)):
                return [*named, *found]
            _try_out(target, connection)
            return [*named, *(problem for task in tables for problem in _table(target, cursor, task))]
    except CdcError as error:
        return [*named, *error.problems]


def _try_out(target: CheckedTarget, connection: Any) -> None:
    """Make a table, comment on it, and drop it again: what every copy needs."""
    name = f"{RESERVED_PREFIX}check_{secrets.token_hex(6)}"
    cursor = connection.cursor()
    cursor.execute(target.sql.create_table(name, [f"{target.sql.quoted('n')} BIGINT"], "cdc", staging=False))
    cursor.execute(f"DROP TABLE {target.sql.table(name)}")
    connection.commit()


def _definition(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    yield from in_the_definition(task, "Spark")
    longest = target.server.longest_name
    long = [name for name in (task.target, *task.schema.names) if len(name.encode()) > longest]
    if long:
        do = "choose another tables.target, or exclude the columns"
        yield Problem("TGT054", "names are too long", task.table, ", ".join(long), f"{longest} bytes", do)
    if task.rule.cluster_by:
        do = "leave cluster_by out, and make the index you want on the table"
        yield Problem("TGT055", "a database lays out rows by its own rules", task.table, "cluster_by", "nothing", do)


def _table(target: CheckedTarget, cursor: Any, task: TableTask) -> Iterator[Problem]:
    held = target.look(cursor, task.table, task.target)
    if held.exists and held.control is None:
        yield not_ours(target.locate(task.target))
