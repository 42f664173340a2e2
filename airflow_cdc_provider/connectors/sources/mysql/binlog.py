"""The binlog as the server sends it to a replica: a sequence of events with their positions.

Reads the packets of the driver. The common library for binlogs decodes values while it reads events: it alters text in
character sets without a codec, empty sets and zero dates. It also reconnects by itself after a lost connection.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.sources.mysql.charsets import statement_text

QUERY, ROTATE, FORMAT, XID = 2, 4, 15, 16
LOAD_QUERY = 18
TABLE_MAP, HEARTBEAT, GTID = 19, 27, 33
XA_PREPARE, PARTIAL_UPDATE, TRANSACTION_PAYLOAD, GTID_TAGGED = 38, 39, 40, 42
INCIDENT = 26
MARIADB_ANNOTATION, MARIADB_GTID, MARIADB_ENCRYPTION, MARIADB_QUERY_COMPRESSED = 160, 162, 164, 165
WRITES, UPDATES, DELETES = frozenset({23, 30, 166, 169}), frozenset({24, 31, 167, 170}), frozenset({25, 32, 168, 171})
ROWS = WRITES | UPDATES | DELETES
VERSION_2 = frozenset({30, 31, 32, 169, 170, 171})
COMPRESSED = frozenset({166, 167, 168, 169, 170, 171})
QUERIES = frozenset({QUERY, LOAD_QUERY, MARIADB_QUERY_COMPRESSED})
"""Events with the text of a statement. That of a LOAD DATA is after the data of its file."""

FORMATS = frozenset({1, 3, FORMAT, ROTATE, HEARTBEAT, 28, 35, 41, 161, 163, MARIADB_ENCRYPTION})
"""Start, stop, format and change of a file, heartbeat, ignorable event, previous GTIDs, heartbeat 2; of MariaDB:
checkpoint, list of GTIDs, start of encryption."""

CONTEXTS = frozenset({5, 13, 14, 9, 11, 17, 29, GTID, 34, 36, 37, GTID_TAGGED, MARIADB_ANNOTATION, MARIADB_GTID})
"""A number, a seed or a variable of the next statement, data of a file to load, a file that was not loaded, the text of
rows, GTID, anonymous GTID, context of a transaction, change of a group of servers."""

HARMLESS = FORMATS | CONTEXTS | ROWS | {XID, PARTIAL_UPDATE}
"""Events that change no row, or rows of tables that a table map before them names. An event that is neither one of
these nor a query nor a table map may have changed any table."""

HEADER = struct.Struct("<IBIIIH")
HEADER_BYTES, CHECKSUM_BYTES = 19, 4
ARTIFICIAL = 0x20
DUMP, NON_BLOCKING = 0x12, 1
EOF, EOF_BYTES = 0xFE, 9


class BinlogEvent(NamedTuple):
    """``start`` and ``end`` are offsets in ``file``; equal for an artificial event, which is in no file. MariaDB 11.8
    gives no offsets inside a transaction: they are counted from its first event, so they are at most the real ones."""

    type: int
    timestamp: int
    server_id: int
    file: str
    start: int
    end: int
    body: bytes


class Malformed(ValueError):
    """The message contains no values of rows."""


MALFORMED = (Malformed, struct.error, IndexError, UnicodeDecodeError, OverflowError, zlib.error)


def read_events(connection: Any, server_id: int, file: str, pos: int) -> Iterator[BinlogEvent]:
    """The events from this position to the current end of the binlog. The server disconnects another reader with the
    same ``server_id``."""
    cursor = connection.cursor()
    cursor.execute("SELECT @@GLOBAL.binlog_checksum")
    has_checksum = cursor.fetchone()[0] not in ("NONE", b"NONE")
    # Each server uses one of the two names.
    cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
    cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
    # Otherwise MariaDB replaces its own event types by others.
    cursor.execute("SET @mariadb_slave_capability = 4")
    connection._execute_command(DUMP, struct.pack("<IHI", pos, NON_BLOCKING, server_id) + file.encode())
    while True:
        data = connection._read_packet().get_all_data()
        if data[0] == EOF and len(data) < EOF_BYTES:
            return
        event, has_checksum = parse_event(data, 1, file, pos, has_checksum)
        yield event
        pos = event.end
        if event.type == ROTATE:
            file, pos = event.body[8:].decode(), int.from_bytes(event.body[:8], "little")


def parse_event(data: bytes, at: int, file: str, pos: int, has_checksum: bool) -> tuple[BinlogEvent, bool]:
    """The event in ``data[at:]``, which starts at offset ``pos`` of ``file`` or later; and whether the next events have
    a checksum. ``has_checksum``: whether this one has."""
    timestamp, kind, server, size, log_pos, flags = HEADER.unpack_from(data, at)
    if kind == FORMAT:
        has_checksum = data[-CHECKSUM_BYTES - 1] == 1
    body = data[at + HEADER_BYTES : -CHECKSUM_BYTES if has_checksum or kind == FORMAT else None]
    if flags & ARTIFICIAL or (kind == FORMAT and not log_pos):
        return BinlogEvent(kind, timestamp, server, file, pos, pos, body), has_checksum
    # Offsets wrap at 32 bits; one large transaction can make a file larger than that.
    end = pos + ((log_pos - pos) & 0xFFFFFFFF) if log_pos else pos + size
    return BinlogEvent(kind, timestamp, server, file, end - size, end, body), has_checksum


NO_ESCAPES, STRICT = 1 << 20, 1 << 21 | 1 << 22
"""Bits of ``sql_mode``: NO_BACKSLASH_ESCAPES; STRICT_TRANS_TABLES, STRICT_ALL_TABLES."""

FLAGS2, SQL_MODE, CATALOG, INCREMENTS, CHARSETS, CATALOG_WITHOUT_NUL = 0, 1, 2, 3, 4, 6
"""Codes of the session variables that an event lists first, in this order but for the catalog's."""

QUERY_BYTES, LOAD_BYTES = 13, 13
"""Of the fields before the session variables: of every query, and those that a LOAD DATA has beside them."""

VARIABLE_BYTES = {FLAGS2: 4, SQL_MODE: 8, INCREMENTS: 4, CHARSETS: 6}


class Query(NamedTuple):
    """``strict``: the session rejected values that do not fit their column. ``escapes``: a backslash in a string of the
    text escapes the next character."""

    database: str
    text: str
    strict: bool = True
    escapes: bool = True


def parse_query(event: BinlogEvent) -> Query:
    _, _, length, _, variables = struct.unpack_from("<IIBHH", event.body)
    start = QUERY_BYTES + (LOAD_BYTES if event.type == LOAD_QUERY else 0)
    at = start + variables
    session = dict(_session_variables(event.body[start:at]))
    mode = int.from_bytes(session.get(SQL_MODE, b""), "little")
    client = int.from_bytes(session.get(CHARSETS, b"")[:2], "little")
    text = event.body[at + length + 1 :]
    if event.type == MARIADB_QUERY_COMPRESSED:
        text = decompress(text)
    return Query(
        event.body[at : at + length].decode(), statement_text(client, text), bool(mode & STRICT), not mode & NO_ESCAPES
    )


def _session_variables(variables: bytes) -> Iterator[tuple[int, bytes]]:
    """Code → value, up to the first code that is not known."""
    at = 0
    while at < len(variables):
        code = variables[at]
        if code in (CATALOG, CATALOG_WITHOUT_NUL):
            size = variables[at + 1] + (2 if code == CATALOG else 1)
        elif code in VARIABLE_BYTES:
            size = VARIABLE_BYTES[code]
        else:
            return
        yield code, variables[at + 1 : at + 1 + size]
        at += 1 + size


def decompress(data: bytes) -> bytes:
    """Data that MariaDB compressed: a byte with the size of the length field, the length, and a zlib stream. By a bit
    of the first byte, it is a deflate stream."""
    if data[0] & 0xF0 != 0x80:
        raise Malformed("compressed with another algorithm than zlib")
    return zlib.decompress(data[1 + (data[0] & 0x07) :], -zlib.MAX_WBITS if data[0] & 0x08 else zlib.MAX_WBITS)
