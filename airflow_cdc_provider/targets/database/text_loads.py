"""Servers that take rows as texts. Each part of a table is loaded in one transaction with a row that names the part.
A task that runs twice finds that row, and leaves the part as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from airflow_cdc_provider.targets.database.names import LOADS
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql


@runtime_checkable
class LoadsTexts(Protocol):
    def insert_if_absent(self, table: str, columns: Sequence[str]) -> str:
        """A parameterised INSERT that does nothing if the key exists."""

    def copy_in(self, connection: Any, table: str, columns: Mapping[str, bool], batches: Iterable[Any]) -> int:
        """Load Arrow batches of texts. ``columns``: name → whether its text is hex bytes. Returns the row count."""


def create_load_table(sql: Sql) -> list[str]:
    """Idempotent statements."""
    columns = [
        f"{sql.quoted('staging_table')} {sql.short_text_type} NOT NULL",
        f"{sql.quoted('share')} {sql.integer_type} NOT NULL",
        f"{sql.quoted('loaded')} {sql.integer_type} NOT NULL",
        sql.primary_key.format(f"{sql.quoted('staging_table')}, {sql.quoted('share')}"),
    ]
    return sql.create_table(LOADS, columns, "", staging=False)


def load_texts(server: Server, name: str, columns: Mapping[str, bool], part: int, batches: Iterable[object]) -> int:
    """``columns`` and ``batches`` as those of ``copy_in``. Returns the number of rows of the part."""
    assert isinstance(server, LoadsTexts)
    sql = server.sql
    with server.session("load") as connection:
        cursor = connection.cursor()
        cursor.execute(server.insert_if_absent(LOADS, ("staging_table", "share", "loaded")), (name, part, 0))
        where = f"{sql.quoted('staging_table')} = %s AND {sql.quoted('share')} = %s"
        if cursor.rowcount == 0:
            cursor.execute(f"SELECT {sql.quoted('loaded')} FROM {sql.table(LOADS)} WHERE {where}", (name, part))
            return int(cursor.fetchone()[0])
        rows = server.copy_in(connection, name, columns, batches)
        cursor.execute(f"UPDATE {sql.table(LOADS)} SET {sql.quoted('loaded')} = %s WHERE {where}", (rows, name, part))
        connection.commit()
        return rows


def delete_loads(server: Server, cursor: Any, name: str) -> None:
    """Delete the rows of a table that is dropped or in use."""
    if isinstance(server, LoadsTexts):
        sql = server.sql
        cursor.execute(f"DELETE FROM {sql.table(LOADS)} WHERE {sql.quoted('staging_table')} = %s", (name,))
