"""Checks of a database target before a job starts."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem, of_table
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX
from airflow_cdc_provider.core.table.merge_plan import COPY, OP
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.common_checks import existing_table
from airflow_cdc_provider.targets.database.loading import LoadsFiles, finish_load, load_part
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import ArrangesRows, Sql
from airflow_cdc_provider.targets.database.staging import create_staged_table, discard, run
from airflow_cdc_provider.targets.target import TargetState

MANY_COLUMNS = 200
"""Fewer fit into a table of every database, whatever their types."""

CHECKED = Column("n", LogicalType(Kind.INT64))


class CheckedTarget(Protocol):
    """The part of a database target that is checked."""

    server: Server

    @property
    def sql(self) -> Sql: ...

    @property
    def alteration_sql(self) -> Sql: ...

    def limits(self, task: TableTask) -> Iterable[Problem]: ...

    def unfit(self, cursor: Any, target_table: str, state: TargetState) -> Unfit | None: ...

    def locate(self, target_table: str) -> str: ...

    def read_state(self, cursor: Any, table: str, target_table: str) -> TargetState: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    definition_problems = [p for task in tables for p in of_table(task.table, _check_definition(target, task))]
    try:
        with target.server.session("check") as connection:
            cursor = connection.cursor()
            if server_problems := list(target.server.server_problems(cursor)):
                return [*definition_problems, *server_problems]
            _try_create_table(target, connection)
            if isinstance(target.server, LoadsFiles):
                target.server.create_stage(cursor)
                connection.commit()
                _try_load(target.server)
            return [
                *definition_problems,
                *(p for task in tables for p in of_table(task.table, _check_table(target, cursor, task))),
            ]
    except CdcError as error:
        return [*definition_problems, *error.problems]


def _try_create_table(target: CheckedTarget, connection: Any) -> None:
    """Create a table with a comment and drop it again: the privileges that every copy requires."""
    name = f"{RESERVED_PREFIX}check_{secrets.token_hex(6)}"
    cursor = connection.cursor()
    columns = [f"{target.sql.quoted('n')} {target.sql.integer_type}"]
    run(cursor, target.sql.create_table(name, columns, "cdc", staging=False))
    cursor.execute(f"DROP TABLE {target.sql.table(name)}")
    connection.commit()


def _try_load(server: Server) -> None:
    """Load a file of one row: the rights on the stage, of the provider and of the database."""
    name, schema = f"{RESERVED_PREFIX}check_{secrets.token_hex(6)}", TableSchema("check", (CHECKED,))
    row = pyarrow.RecordBatch.from_pydict({CHECKED.name: pyarrow.array([1], pyarrow.int64()), OP: [COPY]})
    create_staged_table(server, name, schema)
    try:
        part = load_part(server, name, schema, row.schema.names, 0, [row])
        finish_load(server, name, schema, row.schema.names, [part], 0)
    finally:
        discard(server, name)


def _check_definition(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    yield from target.limits(task)
    if task.rule.cluster_by and not isinstance(target.alteration_sql, ArrangesRows):
        do = "remove cluster_by, and create an index on the target table"
        yield Problem("TGT055", "cluster_by has no effect in this database", task.table, "cluster_by", "nothing", do)


def _check_table(target: CheckedTarget, cursor: Any, task: TableTask) -> Iterator[Problem]:
    state = target.read_state(cursor, task.table, task.target)
    if state.exists and state.control is None:
        yield from existing_table(task, target.locate(task.target))
    if unfit := state.control and target.unfit(cursor, task.target, state):
        yield unfit.problem
    if len(task.schema.columns) > MANY_COLUMNS and not any(target.limits(task)):
        yield from _try_columns(target.server, task.schema)


def _try_columns(server: Server, schema: TableSchema) -> Iterator[Problem]:
    """Create the staging table of a wide table, and drop it again: how many columns fit depends on their types."""
    name = f"{RESERVED_PREFIX}check_{secrets.token_hex(6)}"
    try:
        create_staged_table(server, name, schema)
        with server.session("clean") as connection:
            server.drop_if_unused(connection, name)
            connection.commit()
    except CdcError as error:
        yield from error.problems
