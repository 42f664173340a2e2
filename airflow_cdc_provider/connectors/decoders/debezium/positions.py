"""Where in its source a Debezium event stands, and the order key that follows.

    order key = epoch 8 · place · ordinal · phase 2, all digits hex

| connector | place | ordinal |
|---|---|---|
| mysql, mariadb | number of the file 16 · position 16 · row of the event 8 | |
| postgresql | end of the transaction before 16 · LSN 16 | in the transaction 16 |
| sqlserver | commit LSN 20 · command 8 (always 0) · change LSN 20 | serial number of the event 2 |
| oracle | commit SCN 20 · redo thread 4 · SCN 20 · record set 20 · SQL number 8 | |
| mongodb | seconds 16 · ordinal in the second 16 | in the transaction 16 |

Two halves of a key change stand at one place. The row LSN of PostgreSQL is not monotone in its stream, transactions
being told in the order of their commits; the end of the one before is. The first one that a connector tells without
offsets says none: there the row's own LSN does as well, since whoever changed the row before had ended by then. A row
that a copy met comes before all changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError

INITIAL = frozenset({True, "true", "first", "first_in_data_collection", "last_in_data_collection", "last"})
SEQUENCE = re.compile(r'\[\s*(?:null|"(?:null)?"|"(\d+)")\s*,\s*(?:null|"(?:null)?"|"?(\d+)"?)\s*\]')
LSN_PARTS = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,4})")
RECORD_SET = re.compile(r"\s*0x([0-9a-fA-F]{1,8})\.([0-9a-fA-F]{1,8})\.([0-9a-fA-F]{1,4})\s*")
BEHIND_ALL_ROWS = (1 << 32) - 1


class EventPosition(NamedTuple):
    """Hex digits. ``at`` is shared by the halves of a key change."""

    at: str
    ordinal: str = ""


Source = Mapping[str, Any]
ReadPosition = Callable[[Source, int | None, str, int, bool], EventPosition]
"""From source block, place in the transaction (None where the connector does not tell it), the kind of copy as a change
record says it, the offset of the message, and whether the row is without key."""


def snapshot_of(source: Mapping[str, Any], op: str) -> str:
    """Old connectors tell a truth value, newer ones text."""
    marker = source.get("snapshot")
    if marker == "false" and op != "r":
        return "none"
    if marker == "incremental":
        return "incremental"
    if op == "r" or (isinstance(marker, bool | str) and marker in INITIAL):
        return "initial"
    return "none"


def number(source: Mapping[str, Any], name: str, digits: int, missing: int | None = None) -> int:
    """A whole number, also as text; ``missing`` stands for null, where null may be."""
    value = source.get(name)
    if type(value) is int and 0 <= value < 1 << 4 * digits:
        return value
    if value is None and missing is not None:
        return missing
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 40:
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 4 * digits:
        raise DecodeError(NO_ORDER, f"the source block has no {name} that is a place")
    return value


def mysql(source: Source, ordinal: int | None, snapshot: str, offset: int, keyless: bool) -> EventPosition:
    """Rows of an incremental copy stand behind the change at whose place they are told."""
    row = BEHIND_ALL_ROWS if snapshot == "incremental" else number(source, "row", 8, 0)
    return EventPosition(f"{file_digits(source.get('file'))}{number(source, 'pos', 16):016x}{row:08x}")


def file_digits(name: Any) -> str:
    suffix = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not (suffix.isdecimal() and suffix.isascii() and len(suffix) < 16):
        raise DecodeError(NO_ORDER, "the source block names no log file with a number")
    return f"{int(suffix):016x}"


def postgresql(source: Source, ordinal: int | None, snapshot: str, offset: int, keyless: bool) -> EventPosition:
    """Without transaction metadata the equal rows of a table without key differ by their offsets alone."""
    previous, lsn = _sequence(source)
    if snapshot != "none" and not previous:
        return EventPosition("0" * 32, f"{lsn if snapshot == 'initial' else offset:016x}")
    if ordinal is None:
        ordinal = offset if keyless else 0
    return EventPosition(f"{previous or lsn:016x}{lsn:016x}", f"{ordinal:016x}")


def _sequence(source: Mapping[str, Any]) -> tuple[int, int]:
    """The end of the transaction before, and this event's own LSN; 0 where unknown."""
    told = source.get("sequence")
    if told is None:
        return 0, number(source, "lsn", 16, 0 if snapshot_of(source, "") != "none" else None)
    found = SEQUENCE.fullmatch(told) if isinstance(told, str) else None
    if found is None or max(len(one or "") for one in found.groups()) > 19:
        raise DecodeError(NO_ORDER, "the source block has no sequence of two places")
    return int(found[1] or 0), number(source, "lsn", 16, int(found[2] or 0))


def sqlserver(source: Source, ordinal: int | None, snapshot: str, offset: int, keyless: bool) -> EventPosition:
    copied = snapshot != "none"
    serial = number(source, "event_serial_no", 2, 0)
    change = _lsn(source, "change_lsn", copied)
    return EventPosition(f"{_lsn(source, 'commit_lsn', copied)}{0:08x}{change}", f"{serial:02x}")


def _lsn(source: Mapping[str, Any], name: str, may_miss: bool) -> str:
    told = source.get(name)
    if told is None and may_miss:
        return "0" * 20
    return lsn_digits(told, name)


def lsn_digits(told: Any, name: str) -> str:
    """``00000025:00000728:0003`` as 20 digits."""
    found = LSN_PARTS.fullmatch(told) if isinstance(told, str) else None
    if found is None:
        raise DecodeError(NO_ORDER, f"{name} is no place in the log")
    return f"{found[1]:0>8}{found[2]:0>8}{found[3]:0>4}".lower()


def oracle(source: Source, ordinal: int | None, snapshot: str, offset: int, keyless: bool) -> EventPosition:
    """A copy at an SCN holds what was committed up to it."""
    copied = snapshot != "none"
    scn = number(source, "scn", 20, 0)
    told = source.get("commit_scn")
    first = {"commit_scn": told.partition(",")[0].partition(":")[0] if isinstance(told, str) else told}
    commit = number(first, "commit_scn", 20, scn if copied else None)
    if copied:
        return EventPosition(f"{commit:020x}{0:052x}")
    thread = number(source, "redo_thread", 4, 0)
    ssn = number(source, "ssn", 8, 0)
    return EventPosition(f"{commit:020x}{thread:04x}{scn:020x}{record_set_digits(source.get('rs_id'))}{ssn:08x}")


def record_set_digits(told: Any) -> str:
    """Oracle pads ``0x0073c9.000a4e4c.01d0`` with blanks."""
    if told is None or told == "":
        return "0" * 20
    found = RECORD_SET.fullmatch(told) if isinstance(told, str) else None
    if found is None:
        raise DecodeError(NO_ORDER, "rs_id is no place in the log")
    return f"{found[1]:0>8}{found[2]:0>8}{found[3]:0>4}".lower()


def mongodb(source: Source, ordinal: int | None, snapshot: str, offset: int, keyless: bool) -> EventPosition:
    """A transaction has one place; without metadata its documents' changes keep the order of their messages."""
    seconds = number(source, "ts_ms", 16) // 1000
    if ordinal is None:
        ordinal = offset if source.get("txnNumber") is not None else 0
    if snapshot == "initial":
        return EventPosition("0" * 32, f"{offset:016x}")
    return EventPosition(f"{seconds:016x}{number(source, 'ord', 16, 0):016x}", f"{ordinal:016x}")


PLACES: Mapping[str, tuple[ReadPosition, int]] = {
    "mysql": (mysql, 42),
    "mariadb": (mysql, 42),
    "postgresql": (postgresql, 50),
    "sqlserver": (sqlserver, 52),
    "oracle": (oracle, 74),
    "mongodb": (mongodb, 50),
}
"""Connector -> how it tells places, and the digits of its order keys behind the epoch."""
