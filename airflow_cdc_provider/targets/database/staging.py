"""Tables that rows wait in: made by the driver, loaded by Spark's tasks, gone behind the commit.

A task may run twice, and its first run may even finish after the second. So each share of a table is loaded in one
transaction with a row that names it, and whoever finds that row leaves the share as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.cuts import cut_statements
from airflow_cdc_provider.targets.database.names import CONTROL, CUT, LOADS, ROW, comment, identity_in, staging_prefix
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import (
    Sql,
    column_list,
    control_tables,
    key_is_unique,
    staged_column_list,
)


def prepare(server: Server, target_table: str, lock_name: str) -> None:
    """Our own tables are there, and nothing is left of attempts on this table that died. An attempt that still lives
    loses its staging table here: it would have been fenced anyway."""
    sql = server.sql
    with server.session("prepare") as connection:
        cursor = connection.cursor()
        server.lock(cursor, lock_name)
        if any(server.comment(cursor, name) is None for name in (CONTROL, LOADS, CUT)):
            server.lock(cursor, "cdc:control")
            for statement in (*control_tables(sql), *cut_statements(sql)):
                cursor.execute(statement)
        for left in server.tables_like(cursor, staging_prefix(target_table)):
            drop(server, connection, left)
        control.forget_others(cursor, sql, target_table, identity_in(server.comment(cursor, target_table) or ""))
        connection.commit()


def make_staged(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    with server.session("stage") as connection:
        connection.cursor().execute(sql.create_table(name, staged_column_list(sql, schema), "", staging=True))
        connection.commit()


def make_shadow(server: Server, name: str, schema: TableSchema, soft: bool, identity: str) -> None:
    sql = server.sql
    with server.session("stage") as connection:
        columns = column_list(sql, schema, soft)
        connection.cursor().execute(sql.create_table(name, columns, comment(identity), staging=False))
        connection.commit()


def settle_staged(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    index = (schema.key or (ROW,)) if sql.staged_rows_need_index else ()
    with server.session("stage") as connection:
        cursor = connection.cursor()
        if not schema.key:
            row = sql.row_text("s", schema.columns)
            cursor.execute(f"UPDATE {sql.table(name)} AS s SET {sql.quoted(ROW)} = {row}")
        server.settle(cursor, name, index, False, f"{name}_key")
        connection.commit()


def settle_shadow(server: Server, name: str, schema: TableSchema, target_table: str, identity: str) -> None:
    constraint = f"{target_table[:40]}_{identity[:8]}_key"
    with server.session("stage") as connection:
        server.settle(connection.cursor(), name, schema.key, key_is_unique(schema), constraint)
        connection.commit()


def load_share(server: Server, name: str, columns: Mapping[str, bool], share: int, batches: Iterable[object]) -> int:
    """One share of a staging table, from Arrow batches of texts. Runs in an executor. The number of rows."""
    sql = server.sql
    with server.session("load") as connection:
        cursor = connection.cursor()
        cursor.execute(sql.insert_once(LOADS, ("staging_table", "share", "loaded")), (name, share, 0))
        where = f"{sql.quoted('staging_table')} = %s AND {sql.quoted('share')} = %s"
        if cursor.rowcount == 0:
            cursor.execute(f"SELECT {sql.quoted('loaded')} FROM {sql.table(LOADS)} WHERE {where}", (name, share))
            return int(cursor.fetchone()[0])
        rows = server.copy_in(connection, name, columns, batches)
        cursor.execute(f"UPDATE {sql.table(LOADS)} SET {sql.quoted('loaded')} = %s WHERE {where}", (rows, name, share))
        connection.commit()
        return rows


def discard(server: Server, name: str) -> None:
    with server.session("clean") as connection:
        drop(server, connection, name)
        connection.commit()


def drop(server: Server, connection: Any, name: str) -> None:
    """A table that somebody is still loading stays for the next attempt to find."""
    if server.drop_if_free(connection, name):
        forget_loads(server.sql, connection.cursor(), name)


def forget_loads(sql: Sql, cursor: Any, name: str) -> None:
    cursor.execute(f"DELETE FROM {sql.table(LOADS)} WHERE {sql.quoted('staging_table')} = %s", (name,))
