"""GTIDs in events of the binlog. Pure."""

from __future__ import annotations

import struct
from uuid import UUID

from airflow_cdc_provider.connectors.sources.mysql.binlog import (
    GTID,
    GTID_TAGGED,
    MARIADB_GTID,
    BinlogEvent,
    Malformed,
)
from airflow_cdc_provider.connectors.sources.mysql.table_map import Reader

GTIDS = frozenset({GTID, GTID_TAGGED, MARIADB_GTID})
FLAGS, SERVER, NUMBER, TAG = 0, 1, 2, 3


def parse_gtid(event: BinlogEvent) -> str:
    """``event``: one of ``GTIDS``."""
    if event.type == MARIADB_GTID:
        number, domain = struct.unpack_from("<QI", event.body)
        return f"{domain}-{event.server_id}-{number}"
    if event.type == GTID_TAGGED:
        return _tagged(Reader(event.body))
    (number,) = struct.unpack_from("<q", event.body, 17)
    return f"{UUID(bytes=event.body[1:17])}:{number}"


def _tagged(reader: Reader) -> str:
    """``server:tag:number``, in the format of MySQL 8.3 and later: numbered fields of numbers with variable length."""
    for _ in range(3):  # the version of the format, the size, the last field that a reader must know
        _number(reader)
    _expect(reader, FLAGS)
    reader.byte()
    _expect(reader, SERVER)
    server = bytes(_number(reader) for _ in range(16))
    _expect(reader, NUMBER)
    zigzag = _number(reader)
    _expect(reader, TAG)
    tag = reader.take(_number(reader)).decode()
    return f"{UUID(bytes=server)}:{tag}:{(zigzag >> 1) ^ -(zigzag & 1)}"


def _expect(reader: Reader, field: int) -> None:
    if (found := _number(reader)) != field:
        raise Malformed(f"field {found} of a GTID in place of {field}")


def _number(reader: Reader) -> int:
    """An unsigned number. Its first byte has a 1 bit for each byte that follows."""
    first = reader.byte()
    more = (~first & (first + 1)).bit_length() - 1
    return int.from_bytes(bytes([first]) + reader.take(more), "little") >> min(more + 1, 8)
