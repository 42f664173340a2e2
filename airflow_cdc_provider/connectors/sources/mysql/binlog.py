"""The binlog as the server sends it to a replica: one event after the other, each with its place.

Written on the driver's packets. The usual library reads values while it reads events: text that its codecs do not
know, empty sets and zero dates come out as something else, and it goes on by itself where a connection was lost.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

QUERY, ROTATE, FORMAT, XID = 2, 4, 15, 16
TABLE_MAP, HEARTBEAT, GTID = 19, 27, 33
XA_PREPARE, PARTIAL_UPDATE, TRANSACTION_PAYLOAD = 38, 39, 40
INCIDENT = 26
MARIADB_GTID, MARIADB_QUERY_COMPRESSED = 162, 165
WRITES, UPDATES, DELETES = frozenset({23, 30, 166, 169}), frozenset({24, 31, 167, 170}), frozenset({25, 32, 168, 171})
ROWS = WRITES | UPDATES | DELETES
VERSION_2 = frozenset({30, 31, 32, 169, 170, 171})
COMPRESSED = frozenset({166, 167, 168, 169, 170, 171})

HEADER = struct.Struct("<IBIIIH")
HEADER_BYTES, CHECKSUM_BYTES = 19, 4
ARTIFICIAL = 0x20
DUMP, NON_BLOCKING = 0x12, 1
EOF, EOF_BYTES = 0xFE, 9


class BinlogEvent(NamedTuple):
    """``start`` and ``end`` are its place in ``file``; equal for what the server makes up for us."""

    type: int
    timestamp: int
    server_id: int
    file: str
    start: int
    end: int
    body: bytes


class Malformed(ValueError):
    """Says what is wrong, without a value."""


MALFORMED = (Malformed, struct.error, IndexError, UnicodeDecodeError, OverflowError, zlib.error)


def events(connection: Any, server_id: int, file: str, pos: int) -> Iterator[BinlogEvent]:
    """From this place to where the server's binlog ends now. A reader with the same ``server_id`` is sent away."""
    cursor = connection.cursor()
    cursor.execute("SELECT @@GLOBAL.binlog_checksum")
    checked = cursor.fetchone()[0] not in ("NONE", b"NONE")
    # Each server knows one of the two names.
    cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
    cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
    # MariaDB then tells its own events instead of others in their place.
    cursor.execute("SET @mariadb_slave_capability = 4")
    connection._execute_command(DUMP, struct.pack("<IHI", pos, NON_BLOCKING, server_id) + file.encode())
    while True:
        data = connection._read_packet().get_all_data()
        if data[0] == EOF and len(data) < EOF_BYTES:
            return
        event, checked = event_of(data, 1, file, pos, checked)
        yield event
        pos = event.end
        if event.type == ROTATE:
            file, pos = event.body[8:].decode(), int.from_bytes(event.body[:8], "little")


def event_of(data: bytes, at: int, file: str, pos: int, checked: bool) -> tuple[BinlogEvent, bool]:
    """One event behind ``pos``, from ``at`` to the end of the data; and whether those that follow have a checksum, as
    this one has if ``checked``."""
    timestamp, kind, server, size, log_pos, flags = HEADER.unpack_from(data, at)
    if kind == FORMAT:
        checked = data[-CHECKSUM_BYTES - 1] == 1
    body = data[at + HEADER_BYTES : -CHECKSUM_BYTES if checked or kind == FORMAT else None]
    # Positions wrap at 32 bits; a file may be larger by one large transaction.
    end = pos if flags & ARTIFICIAL or not log_pos else pos + ((log_pos - pos) & 0xFFFFFFFF)
    return BinlogEvent(kind, timestamp, server, file, end if end == pos else end - size, end, body), checked


STRICT = 1 << 21 | 1 << 22
"""Of ``sql_mode``: STRICT_TRANS_TABLES, STRICT_ALL_TABLES."""

FLAGS2, SQL_MODE = 0, 1
"""Codes of a session's variables, which come in this order."""


class Query(NamedTuple):
    """``strict``: the session refused values that do not fit their column."""

    database: str
    text: str
    strict: bool = True


def query_of(event: BinlogEvent) -> Query:
    """A statement that is logged as such."""
    _, _, length, _, variables = struct.unpack_from("<IIBHH", event.body)
    at = 13 + variables
    strict = _is_strict(event.body[13:at])
    text = event.body[at + length + 1 :]
    if event.type == MARIADB_QUERY_COMPRESSED:
        text = inflated(text)
    return Query(event.body[at : at + length].decode(), text.decode("utf-8", "replace"), strict)


def _is_strict(variables: bytes) -> bool:
    at = 5 if variables[:1] == bytes([FLAGS2]) else 0
    told = variables[at : at + 1] == bytes([SQL_MODE])
    return told and bool(int.from_bytes(variables[at + 1 : at + 9], "little") & STRICT)


def inflated(data: bytes) -> bytes:
    """What MariaDB has compressed: a byte that tells how many bytes the length has, the length, zlib's stream."""
    if data[0] & 0xF0 != 0x80:
        raise Malformed("compressed by an algorithm that is not zlib")
    return zlib.decompress(data[1 + (data[0] & 0x07) :])


def gtid_of(event: BinlogEvent) -> str:
    if event.type == MARIADB_GTID:
        number, domain = struct.unpack_from("<QI", event.body)
        return f"{domain}-{event.server_id}-{number}"
    uuid = event.body[1:17].hex()
    (number,) = struct.unpack_from("<q", event.body, 17)
    return f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}:{number}"
