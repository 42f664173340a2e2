"""The control row of a copy. An update names the row that was read before, as a compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql

COLUMNS = (
    "target_table",
    "identity",
    "replicator",
    "source_table",
    "fence",
    "cursor_window",
    "nonce",
    "record",
)


@runtime_checkable
class ListsRows(Protocol):
    """A server that lists the rows of a small table without a query, which would be paid for."""

    def list_rows(self, cursor: Any, table: str, columns: Sequence[str]) -> Iterable[Sequence[Any]]:
        """Empty if there is no such table."""


def records(server: Server, cursor: Any, target_table: str) -> Mapping[str, ControlRecord]:
    """The control records of all copies of a table that have a row, by the identity of the copy."""
    sql, table = server.sql, server.sql.control_table(target_table)
    if isinstance(server, ListsRows):
        rows = server.list_rows(cursor, table, ("target_table", "identity", "record"))
        found = [(identity, text) for name, identity, text in rows if name == target_table]
    elif server.comment(cursor, table) is None:
        found = []
    else:
        columns = f"{sql.quoted('identity')}, {sql.quoted('record')}"
        where = f"{sql.quoted('target_table')} = %s"
        cursor.execute(f"SELECT {columns} FROM {sql.table(table)} WHERE {where}", (target_table,))
        found = cursor.fetchall()
    return {str(identity): from_plain(ControlRecord, json.loads(text)) for identity, text in found}


def insert(sql: Sql, target_table: str, identity: str, record: ControlRecord) -> Command:
    """Insert the first row of a new copy. It takes effect when a table with this identity has the name."""
    names, values = ", ".join(map(sql.quoted, COLUMNS)), ", ".join("%s" for _ in COLUMNS)
    return Command(
        f"INSERT INTO {_table(sql, target_table)} ({names}) VALUES ({values})",
        (target_table, identity, record.replicator, record.table, *_cursor_values(record)),
    )


def advance(sql: Sql, target_table: str, identity: str, expected: ControlRecord, record: ControlRecord) -> Command:
    """Replace ``expected`` by ``record``: changes one row, or none if the row is no longer ``expected``."""
    sets = ", ".join(f"{sql.quoted(name)} = %s" for name in ("fence", "cursor_window", "nonce", "record"))
    where = " AND ".join(
        f"{sql.quoted(name)} = %s" for name in ("target_table", "identity", "fence", "cursor_window", "nonce")
    )
    return Command(
        f"UPDATE {_table(sql, target_table)} SET {sets} WHERE {where}",
        (*_cursor_values(record), target_table, identity, expected.fence, expected.window, expected.nonce),
    )


def delete(sql: Sql, target_table: str, identities: Iterable[str]) -> list[Command]:
    where = f"{sql.quoted('target_table')} = %s AND {sql.quoted('identity')} = %s"
    text = f"DELETE FROM {_table(sql, target_table)} WHERE {where}"
    return [Command(text, (target_table, identity)) for identity in sorted(identities)]


def _cursor_values(record: ControlRecord) -> tuple[int, int, str, str]:
    text = json.dumps(to_plain(record), ensure_ascii=False, separators=(",", ":"))
    return record.fence, record.window, record.nonce, text


def _table(sql: Sql, target_table: str) -> str:
    return sql.table(sql.control_table(target_table))
