"""Staging tables in the target database: created before they are loaded, dropped after the commit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.conflicts import retry_conflicts
from airflow_cdc_provider.targets.database.cuts import create_cut_table, create_view
from airflow_cdc_provider.targets.database.loading import LoadsFiles
from airflow_cdc_provider.targets.database.names import (
    CONTROL,
    CUT,
    LOADS,
    ROW,
    comment,
    identity_in,
    key_index,
    staging_prefix,
)
from airflow_cdc_provider.targets.database.server import LocksTables, Server
from airflow_cdc_provider.targets.database.sql import (
    ArrangesRows,
    ArrangesStagedRows,
    ComparesRowTexts,
    HidesRows,
    Sql,
    column_list,
    create_control_table,
    key_is_unique,
    staged_column_list,
)
from airflow_cdc_provider.targets.database.text_loads import LoadsTexts, create_load_table, delete_loads


def prepare_staging(server: Server, target_table: str, name: str = "") -> None:
    """Create our own tables, and drop orphans of earlier attempts on this copy. ``name``: of the copy in our tables, if
    that is not the name of its target table. An attempt that is still running loses
    its staging table; its commit would be rejected anyway.

    A control row belongs to a copy that has the table's name, or that has yet to get it. A copy that lost its staging
    table gets it no more, so the rows that are older than that can be deleted."""
    retry_conflicts(partial(_prepare_staging, server, target_table, name or target_table))


def _prepare_staging(server: Server, target_table: str, name: str) -> None:
    """The lock comes first in its transaction: what was read before it may be old."""
    sql = server.sql
    with server.session("prepare") as connection:
        cursor = connection.cursor()
        create_own_tables(server, cursor, target_table)
        connection.commit()
        server.lock_table(cursor, target_table)
        before = set(control.records(server, cursor, name))
        for orphan in server.tables_like(cursor, staging_prefix(name)):
            drop(server, connection, orphan)
        current = identity_in(server.comment(cursor, target_table) or "")
        for command in control.delete(sql, name, before - {current}):
            command.execute(cursor)
        connection.commit()


def create_own_tables(server: Server, cursor: Any, target_table: str) -> None:
    sql = server.sql
    names = {sql.control_table(target_table), CUT, *([LOADS] if isinstance(server, LoadsTexts) else [])}
    lock = server.lock_table_name(target_table) if isinstance(server, LocksTables) else ""
    names |= {lock} if lock else set()
    if all(server.comment(cursor, name) is not None for name in names):
        return
    server.lock_own_tables(cursor)
    run(cursor, create_control_table(sql, target_table))
    run(cursor, create_cut_table(sql))
    if lock:
        run(cursor, sql.create_table(lock, [f"{sql.quoted('n')} INTEGER"], "", staging=False))
    if isinstance(server, LoadsTexts):
        run(cursor, create_load_table(sql))
    if isinstance(server, LoadsFiles):
        server.create_stage(cursor)
    cursor.execute(create_view(sql, server.tables_like(cursor, CONTROL)))


def create_staged_table(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    with server.session("stage") as connection:
        layout = sql.staged_layout(schema) if isinstance(sql, ArrangesStagedRows) else ""
        create = sql.create_table(name, staged_column_list(sql, schema), "", True, layout)
        run(connection.cursor(), [*create, *_hide_rows(sql, name)])
        connection.commit()


def create_shadow_table(
    server: Server,
    name: str,
    schema: TableSchema,
    soft: bool,
    identity: str,
    cluster_by: Sequence[str],
    shared: bool = False,
) -> None:
    sql = server.sql
    layout = sql.layout(schema, cluster_by) if isinstance(sql, ArrangesRows) else ""
    with server.session("stage") as connection:
        create = sql.create_table(name, column_list(sql, schema, soft), comment(identity, shared), False, layout)
        run(connection.cursor(), [*create, *_hide_rows(sql, name)])
        connection.commit()


def _hide_rows(sql: Sql, name: str) -> list[str]:
    return [sql.hide_rows(sql.table(name))] if isinstance(sql, HidesRows) else []


def run(cursor: Any, statements: Sequence[str]) -> None:
    for statement in statements:
        cursor.execute(statement)


def index_staged_table(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    index = (schema.key or (ROW,)) if sql.staged_rows_need_index else ()
    with server.session("stage") as connection:
        cursor = connection.cursor()
        if isinstance(sql, ComparesRowTexts) and not schema.key:
            row = sql.row_text(STAGED_ALIAS, schema.columns)
            cursor.execute(f"UPDATE {sql.table(name)} AS {STAGED_ALIAS} SET {sql.quoted(ROW)} = {row}")
        server.index_and_analyze(cursor, name, index, False, f"{name}_key")
        connection.commit()


def index_shadow_table(server: Server, name: str, schema: TableSchema, target_table: str, identity: str) -> None:
    constraint = key_index(target_table, identity)
    with server.session("stage") as connection:
        cursor = connection.cursor()
        server.index_and_analyze(cursor, name, schema.key, key_is_unique(schema), constraint)
        connection.commit()


def discard(server: Server, name: str) -> None:
    with server.session("clean") as connection:
        drop(server, connection, name)
        connection.commit()


def drop(server: Server, connection: Any, name: str) -> None:
    """A table that a session is still loading is left to the next attempt."""
    if server.drop_if_unused(connection, name):
        delete_loads(server, connection.cursor(), name)
