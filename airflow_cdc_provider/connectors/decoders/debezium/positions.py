"""Positions of Debezium events in their source, and order keys.

    order key = epoch 8 · position · ordinal · phase 2, all digits hex

| connector | position | ordinal |
|---|---|---|
| mysql, mariadb | number of the log file 16 · log position 16 · row of the event 8 | in the transaction 16 |
| postgresql | end of the previous transaction 16 · LSN 16 | in the transaction 16 |
| sqlserver | commit LSN 20 · command 8 (always 0) · change LSN 20 | serial number of the event 2 |
| oracle | commit SCN 20 · redo thread 4 · SCN 20 · record set 20 · SQL number 8 | |
| mongodb | seconds 16 · ordinal in the second 16 | in the transaction 16 |

A truncate and a DDL statement of Oracle commit themselves: their position is their own SCN. The commit SCN in the
source block is that of the last transaction before them, or missing if the connector has seen none since it started.

The halves of a key change share a position; with MariaDB 11.8, and with `binlog_transaction_compression` of MySQL, all
changes of a transaction do. The row LSN of PostgreSQL is not monotonic in the stream, since transactions are sent in
commit order; the end of the previous transaction is. It is missing in the first transaction of a connector without
offsets. There the row's LSN serves, since earlier changes of the row were committed before. Rows of a snapshot precede
all changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError, required_order

INITIAL_MARKERS = frozenset({True, "true", "first", "first_in_data_collection", "last_in_data_collection", "last"})
SEQUENCE = re.compile(r'\[\s*(?:null|"(?:null)?"|"(\d+)")\s*,\s*(?:null|"(?:null)?"|"?(\d+)"?)\s*\]')
LSN_PARTS = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,4})")
RECORD_SET = re.compile(r"\s*0x([0-9a-fA-F]{1,8})\.([0-9a-fA-F]{1,8})\.([0-9a-fA-F]{1,4})\s*")
AFTER_ALL_ROWS = (1 << 32) - 1
LOGMINER = (
    "let a current connector read Oracle through LogMiner (`database.connection.adapter: logminer`), write to new "
    "topics, and resync"
)
WITHOUT_COMMIT = (
    "the source block has no commit_scn, as events of OpenLogReplicator: these have the SCN of a checkpoint, which "
    f"several transactions share, and not their place in it; {LOGMINER}"
)
WITHOUT_RECORD_SET = (
    "the source block has no rs_id, as events of XStream and of old connectors: thousands of changes may share an SCN, "
    f"also those of one row; {LOGMINER}"
)


class EventPosition(NamedTuple):
    """Hex digits. ``at``: the position, shared by the halves of a key change. ``phased``: of the changes of one key at
    one position, the delete is the first."""

    at: str
    ordinal: str = ""
    phased: bool = True


Source = Mapping[str, Any]
ReadPosition = Callable[[Source, int | None, str, int | None, bool], EventPosition]
"""Arguments: source block, number in the transaction (None if unknown), ``ChangeRecord.snapshot``, offset of the
message (None if it orders nothing), and whether the table has no key."""


def snapshot_of(source: Mapping[str, Any], op: str) -> str:
    """The marker is a boolean in old connectors, and text in newer ones."""
    marker = source.get("snapshot")
    if marker == "false" and op != "r":
        return "none"
    if marker == "incremental":
        return "incremental"
    if op == "r" or (isinstance(marker, bool | str) and marker in INITIAL_MARKERS):
        return "initial"
    return "none"


def read_number(source: Mapping[str, Any], name: str, digits: int, default: int | None = None) -> int:
    """An integer or its text. ``default``: for null; without it, null raises DecodeError."""
    value = source.get(name)
    if type(value) is int and 0 <= value < 1 << 4 * digits:
        return value
    if value is None and default is not None:
        return default
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 40:
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 4 * digits:
        raise DecodeError(NO_ORDER, f"the source block has no valid {name}")
    return value


def mysql(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    """As ``mariadb``. Most servers do not compress transactions, so a change with neither number nor offset is decoded.
    Two different ones of a key at one position have one order key, which stops their table."""
    if snapshot == "none" and ordinal is None and offset is None:
        return EventPosition(_binlog_digits(source, snapshot), "0" * 16, phased=False)
    return mariadb(source, ordinal, snapshot, offset, keyless)


def mariadb(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    """Without transaction metadata, changes are ordered by message offset: those of a key are in one partition."""
    at = _binlog_digits(source, snapshot)
    if snapshot != "none":
        return EventPosition(at, "0" * 16)
    return EventPosition(at, f"{required_order(offset) if ordinal is None else ordinal:016x}")


def _binlog_digits(source: Source, snapshot: str) -> str:
    """Rows of an incremental snapshot follow the change at the position that they have."""
    row = AFTER_ALL_ROWS if snapshot == "incremental" else read_number(source, "row", 8, 0)
    return f"{file_digits(source.get('file'))}{read_number(source, 'pos', 16):016x}{row:08x}"


def file_digits(name: Any) -> str:
    suffix = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not (suffix.isdecimal() and suffix.isascii() and len(suffix) < 16):
        raise DecodeError(NO_ORDER, "the source block has no file with a number")
    return f"{int(suffix):016x}"


def postgresql(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    """Without transaction metadata, equal rows of a table without key differ only by their offsets."""
    previous, lsn = sequence_of(source)
    if snapshot != "none" and not previous:
        return EventPosition("0" * 32, f"{lsn if snapshot == 'initial' else required_order(offset):016x}")
    if ordinal is None:
        ordinal = required_order(offset) if keyless else 0
    return EventPosition(f"{previous or lsn:016x}{lsn:016x}", f"{ordinal:016x}")


def sequence_of(source: Mapping[str, Any]) -> tuple[int, int]:
    """The end of the previous transaction and the LSN of the event; 0 if unknown."""
    sequence = source.get("sequence")
    if sequence is None:
        return 0, read_number(source, "lsn", 16, 0 if snapshot_of(source, "") != "none" else None)
    match = SEQUENCE.fullmatch(sequence) if isinstance(sequence, str) else None
    if match is None or max(len(digits or "") for digits in match.groups()) > 19:
        raise DecodeError(NO_ORDER, "the source block has no sequence of two positions")
    return int(match[1] or 0), read_number(source, "lsn", 16, int(match[2] or 0))


def sqlserver(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    is_snapshot = snapshot != "none"
    serial = read_number(source, "event_serial_no", 2, 0)
    change = _lsn(source, "change_lsn", is_snapshot)
    return EventPosition(f"{_lsn(source, 'commit_lsn', is_snapshot)}{0:08x}{change}", f"{serial:02x}")


def _lsn(source: Mapping[str, Any], name: str, is_snapshot: bool) -> str:
    lsn = source.get(name)
    if lsn is None and is_snapshot:
        return "0" * 20
    return lsn_digits(lsn, name)


def lsn_digits(lsn: Any, name: str) -> str:
    """``00000025:00000728:0003`` as 20 digits."""
    match = LSN_PARTS.fullmatch(lsn) if isinstance(lsn, str) else None
    if match is None:
        raise DecodeError(NO_ORDER, f"{name} is not a log position")
    return f"{match[1]:0>8}{match[2]:0>8}{match[3]:0>4}".lower()


def oracle(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    """A snapshot at an SCN contains all transactions committed up to it."""
    is_snapshot = snapshot != "none"
    scn = read_number(source, "scn", 20, 0)
    scns = source.get("commit_scn")
    if scns is None and not is_snapshot:
        raise DecodeError(NO_ORDER, WITHOUT_COMMIT)
    first = {"commit_scn": scns.partition(",")[0].partition(":")[0] if isinstance(scns, str) else scns}
    commit = read_number(first, "commit_scn", 20, scn if is_snapshot else None)
    if is_snapshot:
        return EventPosition(f"{commit:020x}{0:052x}")
    if not source.get("rs_id"):
        raise DecodeError(NO_ORDER, WITHOUT_RECORD_SET)
    thread = read_number(source, "redo_thread", 4, 0)
    ssn = read_number(source, "ssn", 8, 0)
    return EventPosition(f"{commit:020x}{thread:04x}{scn:020x}{record_set_digits(source.get('rs_id'))}{ssn:08x}")


def oracle_statement(source: Source) -> EventPosition:
    """After all transactions that were committed at its SCN: it waited for those of its table."""
    return EventPosition(f"{read_number(source, 'scn', 20):020x}".ljust(72, "f"))


def record_set_digits(rs_id: Any) -> str:
    """Oracle pads ``0x0073c9.000a4e4c.01d0`` with spaces."""
    if rs_id is None or rs_id == "":
        return "0" * 20
    match = RECORD_SET.fullmatch(rs_id) if isinstance(rs_id, str) else None
    if match is None:
        raise DecodeError(NO_ORDER, "rs_id is not a log position")
    return f"{match[1]:0>8}{match[2]:0>8}{match[3]:0>4}".lower()


def mongodb(source: Source, ordinal: int | None, snapshot: str, offset: int | None, keyless: bool) -> EventPosition:
    """The changes of a transaction share a position; without metadata they are ordered by message offset."""
    seconds = read_number(source, "ts_ms", 16) // 1000
    if ordinal is None:
        ordinal = required_order(offset) if source.get("txnNumber") is not None else 0
    if snapshot == "initial":
        return EventPosition("0" * 32, f"{seconds if offset is None else offset:016x}")
    return EventPosition(f"{seconds:016x}{read_number(source, 'ord', 16, 0):016x}", f"{ordinal:016x}")


POSITIONS: Mapping[str, tuple[ReadPosition, int]] = {
    "mysql": (mysql, 58),
    "mariadb": (mariadb, 58),
    "postgresql": (postgresql, 50),
    "sqlserver": (sqlserver, 52),
    "oracle": (oracle, 74),
    "mongodb": (mongodb, 50),
}
"""Connector → its position reader, and the number of digits of its order keys without the epoch."""
