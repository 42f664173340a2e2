"""Staging tables in the target database: created by the driver, loaded by Spark's tasks, dropped after the commit.

A task may run twice, and the first run may end after the second. So each partition of a table is loaded in one
transaction with a row that names it; a task that finds the row leaves the partition as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.cuts import cut_statements
from airflow_cdc_provider.targets.database.names import (
    CONTROL,
    CUT,
    LOADS,
    ROW,
    comment,
    identity_in,
    staging_prefix,
)
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import (
    Sql,
    column_list,
    control_tables,
    key_is_unique,
    staged_column_list,
)


def prepare_staging(server: Server, target_table: str, lock_name: str) -> None:
    """Create our own tables, and drop orphans of earlier attempts on this table. An attempt that is still running loses
    its staging table; its commit would be rejected anyway."""
    sql = server.sql
    with server.session("prepare") as connection:
        cursor = connection.cursor()
        server.lock(cursor, lock_name)
        if any(server.comment(cursor, name) is None for name in (CONTROL, LOADS, CUT)):
            server.lock(cursor, "cdc:control")
            for statement in (*control_tables(sql), *cut_statements(sql)):
                cursor.execute(statement)
        for orphan in server.tables_like(cursor, staging_prefix(target_table)):
            drop(server, connection, orphan)
        control.delete_other_copies(cursor, sql, target_table, identity_in(server.comment(cursor, target_table) or ""))
        connection.commit()


def create_staged_table(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    with server.session("stage") as connection:
        connection.cursor().execute(sql.create_table(name, staged_column_list(sql, schema), "", staging=True))
        connection.commit()


def create_shadow_table(server: Server, name: str, schema: TableSchema, soft: bool, identity: str) -> None:
    sql = server.sql
    with server.session("stage") as connection:
        columns = column_list(sql, schema, soft)
        connection.cursor().execute(sql.create_table(name, columns, comment(identity), staging=False))
        connection.commit()


def index_staged_table(server: Server, name: str, schema: TableSchema) -> None:
    sql = server.sql
    index = (schema.key or (ROW,)) if sql.staged_rows_need_index else ()
    with server.session("stage") as connection:
        cursor = connection.cursor()
        if not schema.key:
            row = sql.row_text(STAGED_ALIAS, schema.columns)
            cursor.execute(f"UPDATE {sql.table(name)} AS {STAGED_ALIAS} SET {sql.quoted(ROW)} = {row}")
        server.index_and_analyze(cursor, name, index, False, f"{name}_key")
        connection.commit()


def index_shadow_table(server: Server, name: str, schema: TableSchema, target_table: str, identity: str) -> None:
    constraint = f"{target_table[:40]}_{identity[:8]}_key"
    with server.session("stage") as connection:
        server.index_and_analyze(connection.cursor(), name, schema.key, key_is_unique(schema), constraint)
        connection.commit()


def load_partition(
    server: Server, name: str, columns: Mapping[str, bool], partition: int, batches: Iterable[object]
) -> int:
    """Load one partition of a staging table from Arrow batches of texts. Runs in an executor. Returns the number of
    rows."""
    sql = server.sql
    with server.session("load") as connection:
        cursor = connection.cursor()
        cursor.execute(sql.insert_if_absent(LOADS, ("staging_table", "share", "loaded")), (name, partition, 0))
        where = f"{sql.quoted('staging_table')} = %s AND {sql.quoted('share')} = %s"
        if cursor.rowcount == 0:
            cursor.execute(f"SELECT {sql.quoted('loaded')} FROM {sql.table(LOADS)} WHERE {where}", (name, partition))
            return int(cursor.fetchone()[0])
        rows = server.copy_in(connection, name, columns, batches)
        cursor.execute(
            f"UPDATE {sql.table(LOADS)} SET {sql.quoted('loaded')} = %s WHERE {where}", (rows, name, partition)
        )
        connection.commit()
        return rows


def discard(server: Server, name: str) -> None:
    with server.session("clean") as connection:
        drop(server, connection, name)
        connection.commit()


def drop(server: Server, connection: Any, name: str) -> None:
    """A table that a session is still loading is left to the next attempt."""
    if server.drop_if_unused(connection, name):
        delete_loads(server.sql, connection.cursor(), name)


def delete_loads(sql: Sql, cursor: Any, name: str) -> None:
    cursor.execute(f"DELETE FROM {sql.table(LOADS)} WHERE {sql.quoted('staging_table')} = %s", (name,))
