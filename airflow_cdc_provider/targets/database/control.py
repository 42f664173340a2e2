"""The control row of a copy. An update names the row that was read before, as a compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
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


def read(cursor: Any, sql: Sql, target_table: str, identity: str) -> ControlRecord | None:
    """The control record of one copy of a table, or None."""
    where = f"{sql.quoted('target_table')} = %s AND {sql.quoted('identity')} = %s"
    query = f"SELECT {sql.quoted('record')} FROM {_table(sql, target_table)} WHERE {where}"
    cursor.execute(query, (target_table, identity))
    row = cursor.fetchone()
    return from_plain(ControlRecord, json.loads(row[0])) if row else None


def insert(cursor: Any, sql: Sql, target_table: str, identity: str, record: ControlRecord) -> None:
    """Insert the first row of a new copy. It takes effect when a table with this identity has the name."""
    names = ", ".join(map(sql.quoted, COLUMNS))
    values = ", ".join("%s" for _ in COLUMNS)
    cursor.execute(
        f"INSERT INTO {_table(sql, target_table)} ({names}) VALUES ({values})",
        (target_table, identity, record.replicator, record.table, *_cursor_values(record)),
    )


def advance(
    cursor: Any, sql: Sql, target_table: str, identity: str, expected: ControlRecord, record: ControlRecord
) -> bool:
    """Replace ``expected`` by ``record``. False if the row is no longer ``expected``."""
    sets = ", ".join(f"{sql.quoted(name)} = %s" for name in ("fence", "cursor_window", "nonce", "record"))
    where = " AND ".join(
        f"{sql.quoted(name)} = %s" for name in ("target_table", "identity", "fence", "cursor_window", "nonce")
    )
    cursor.execute(
        f"UPDATE {_table(sql, target_table)} SET {sets} WHERE {where}",
        (*_cursor_values(record), target_table, identity, expected.fence, expected.window, expected.nonce),
    )
    return bool(cursor.rowcount == 1)


def identities(cursor: Any, sql: Sql, target_table: str) -> set[str]:
    """Of all copies of a table that have a row."""
    where = f"{sql.quoted('target_table')} = %s"
    query = f"SELECT {sql.quoted('identity')} FROM {_table(sql, target_table)} WHERE {where}"
    cursor.execute(query, (target_table,))
    return {str(identity) for (identity,) in cursor.fetchall()}


def delete(cursor: Any, sql: Sql, target_table: str, identities: Iterable[str]) -> None:
    where = f"{sql.quoted('target_table')} = %s AND {sql.quoted('identity')} = %s"
    for identity in sorted(identities):
        cursor.execute(f"DELETE FROM {_table(sql, target_table)} WHERE {where}", (target_table, identity))


def _cursor_values(record: ControlRecord) -> tuple[int, int, str, str]:
    text = json.dumps(to_plain(record), ensure_ascii=False, separators=(",", ":"))
    return record.fence, record.window, record.nonce, text


def _table(sql: Sql, target_table: str) -> str:
    return sql.table(sql.control_table(target_table))
