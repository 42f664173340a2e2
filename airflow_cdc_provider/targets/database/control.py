"""The control row of a copy. An update names the row that was read before, as a compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.errors import record_too_long
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.database.sql import Sql

KEY = ("target_table", "identity", "replicator", "source_table")
CURSOR = ("fence", "cursor_window", "nonce")
PIECE = 65_535
"""The length of a piece of a record that is not in one column."""


@runtime_checkable
class ListsRows(Protocol):
    """A server that lists the rows of a small table without a query, which would be paid for."""

    def list_rows(self, cursor: Any, table: str, columns: Sequence[str]) -> Iterable[Sequence[Any]]:
        """Empty if there is no such table."""


def records(server: Server, cursor: Any, target_table: str) -> Mapping[str, ControlRecord]:
    """The control records of all copies of a table that have a row, by the identity of the copy."""
    sql, table = server.sql, server.sql.control_table(target_table)
    if isinstance(server, ListsRows):
        rows = server.list_rows(cursor, table, ("target_table", "identity", *sql.record_columns))
        found = [row for name, *row in rows if name == target_table]
    elif server.comment(cursor, table) is None:
        found = []
    else:
        columns = ", ".join(map(sql.quoted, ("identity", *sql.record_columns)))
        where = f"{sql.quoted('target_table')} = %s"
        cursor.execute(f"SELECT {columns} FROM {sql.table(table)} WHERE {where}", (target_table,))
        found = cursor.fetchall()
    return {str(identity): from_plain(ControlRecord, json.loads("".join(pieces))) for identity, *pieces in found}


def sharing(server: Server, cursor: Any, target_table: str, identity: str) -> list[ControlRecord]:
    """The control records of all copies in the table with this identity. ``target_table``: the name of one of them."""
    sql = server.sql
    table = sql.control_table(target_table)
    if server.comment(cursor, table) is None:
        return []
    columns = ", ".join(map(sql.quoted, sql.record_columns))
    cursor.execute(f"SELECT {columns} FROM {sql.table(table)} WHERE {sql.quoted('identity')} = %s", (identity,))
    return [from_plain(ControlRecord, json.loads("".join(pieces))) for pieces in cursor.fetchall()]


def insert(sql: Sql, target_table: str, identity: str, record: ControlRecord) -> Command:
    """Insert the first row of a new copy. It takes effect when a table with this identity has the name."""
    key = dict(zip(KEY, (target_table, identity, record.replicator, record.table), strict=True))
    row = {**key, **_cursor_values(sql, record)}
    names, values = ", ".join(map(sql.quoted, row)), ", ".join("%s" for _ in row)
    return Command(f"INSERT INTO {_table(sql, target_table)} ({names}) VALUES ({values})", tuple(row.values()))


def advance(sql: Sql, target_table: str, identity: str, expected: ControlRecord, record: ControlRecord) -> Command:
    """Replace ``expected`` by ``record``: changes one row, or none if the row is no longer ``expected``."""
    row = _cursor_values(sql, record)
    if record.replicator != expected.replicator:
        row["replicator"] = record.replicator
    sets = ", ".join(f"{sql.quoted(name)} = %s" for name in row)
    where = " AND ".join(f"{sql.quoted(name)} = %s" for name in ("target_table", "identity", *CURSOR))
    return Command(
        f"UPDATE {_table(sql, target_table)} SET {sets} WHERE {where}",
        (*row.values(), target_table, identity, expected.fence, expected.window, expected.nonce),
    )


def delete(sql: Sql, target_table: str, identities: Iterable[str]) -> list[Command]:
    where = f"{sql.quoted('target_table')} = %s AND {sql.quoted('identity')} = %s"
    text = f"DELETE FROM {_table(sql, target_table)} WHERE {where}"
    return [Command(text, (target_table, identity)) for identity in sorted(identities)]


def lock_row(sql: Sql) -> dict[str, object]:
    """A row without identity, which only serves as a lock."""
    return dict.fromkeys((*KEY, *CURSOR, *sql.record_columns), "") | {"fence": 0, "cursor_window": 0}


def _cursor_values(sql: Sql, record: ControlRecord) -> dict[str, object]:
    cursor = dict(zip(CURSOR, (record.fence, record.window, record.nonce), strict=True))
    return {**cursor, **_record_pieces(sql, record)}


def _record_pieces(sql: Sql, record: ControlRecord) -> dict[str, str]:
    """The text of a record, by column. In pieces, each character is one byte."""
    names = sql.record_columns
    text = json.dumps(to_plain(record), ensure_ascii=len(names) > 1, separators=(",", ":"))
    if len(names) == 1:
        return {names[0]: text}
    if len(text) > PIECE * len(names):
        raise record_too_long(record.table, len(text), PIECE * len(names))
    return {name: text[number * PIECE : (number + 1) * PIECE] for number, name in enumerate(names)}


def _table(sql: Sql, target_table: str) -> str:
    return sql.table(sql.control_table(target_table))
