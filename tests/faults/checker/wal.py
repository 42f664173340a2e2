"""The WAL positions of the commits of the source, from a slot of the checker, of whose messages it reads two kinds.

B: start of the commit record 8 · time 8 · xid 4
C: flags 1 · start of the commit record 8 · its end 8 · time 8
"""

from __future__ import annotations

import struct
from typing import Any

import psycopg

from tests.faults.checker.commits import wal
from tests.faults.checker.ledger import Ledger

SLOT = "checker"

READ = """
SELECT xid::text::bigint, data FROM pg_logical_slot_get_binary_changes(
    %s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)
WHERE get_byte(data, 0) = 67
"""


def watch(connection: psycopg.Connection[Any], name: str) -> None:
    """Creates the slot, before the first transaction of the writer."""
    connection.execute(f'CREATE PUBLICATION "{SLOT}_{name}" FOR ALL TABLES'.encode())
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (f"{SLOT}_{name}",))


def forget(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute("SELECT pg_drop_replication_slot(%s)", (f"{SLOT}_{name}",))


def record_commits(connection: psycopg.Connection[Any], name: str, ledger: Ledger) -> None:
    for xid, data in connection.execute(READ, (f"{SLOT}_{name}", f"{SLOT}_{name}")).fetchall():
        _, start, end = struct.unpack(">BQQ", bytes(data)[1:18])
        ledger.record_commit(xid, start, end)


def acknowledged(connection: psycopg.Connection[Any], slot: str) -> int | None:
    """The acknowledged position; None where the slot does not exist."""
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
    row = connection.execute(query, (slot,)).fetchone()
    return wal(row[0]) if row else None
