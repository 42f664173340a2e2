"""Positions of Datastream events in their source, and order keys.

    order key = epoch 8 · class 2 · position · ordinal 8 · phase 2, all digits hex

Class 00 is a backfilled row, 01 a change. A change of a key is newer than the table's first backfill: the stream has
every change since that began. A later backfill is a hole of its table (``find_restarts``): it may have newer values
than the changes. Among backfilled rows, the one read later is newer.

| source | position |
|---|---|
| mysql | number of the log file 16 · log position 16 |
| oracle | SCN 20 · record set 20 · SQL number 8 |
| postgresql | LSN 16 |
| sqlserver | LSN 20 |
| mongodb | seconds 16 · ordinal in the second 16 |
| salesforce | time in milliseconds 16 |

Timestamps are not used if the source has a log position: the halves of a key change can differ by a second, and clocks
can go back. The ordinal is the counter at the end of the event's uuid, in binary digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us
from airflow_cdc_provider.connectors.decoders.debezium.positions import lsn_digits, read_number, record_set_digits
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn

BACKFILL, CHANGE = "00", "01"
ORDINAL_DIGITS = 8
MAX_MS = (1 << 63) - 1


class DatastreamEvent(NamedTuple):
    """``at_ms``: when the row changed; ``read_ms``: when it was read; 0 if unknown."""

    metadata: Mapping[str, Any]
    sort_keys: Sequence[Any]
    at_ms: int
    read_ms: int


def mysql(event: DatastreamEvent) -> str:
    name = event.metadata.get("log_file")
    suffix = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not (suffix.isdecimal() and suffix.isascii() and len(suffix) < 16):
        raise DecodeError(NO_ORDER, "source_metadata has no log_file with a number")
    return f"{int(suffix):016x}{read_number(event.metadata, 'log_position', 16):016x}"


def oracle(event: DatastreamEvent) -> str:
    ssn = read_number(event.metadata, "ssn", 8, 0)
    return f"{read_number(event.metadata, 'scn', 20):020x}{record_set_digits(event.metadata.get('rs_id'))}{ssn:08x}"


def postgresql(event: DatastreamEvent) -> str:
    text = event.metadata.get("lsn")
    try:
        lsn = parse_lsn(text) if isinstance(text, str) and text.count("/") == 1 and "_" not in text else -1
    except ValueError:
        lsn = -1
    if not 0 <= lsn < 1 << 64:
        raise DecodeError(NO_ORDER, "lsn is not a log position")
    return f"{lsn:016x}"


def sqlserver(event: DatastreamEvent) -> str:
    return lsn_digits(event.metadata.get("lsn"), "lsn")


def mongodb(event: DatastreamEvent) -> str:
    if len(event.sort_keys) < 2:
        raise DecodeError(NO_ORDER, "sort_keys has fewer than two values")
    keys = {"seconds": event.sort_keys[0], "ordinal": event.sort_keys[1]}
    return f"{read_number(keys, 'seconds', 16):016x}{read_number(keys, 'ordinal', 16):016x}"


def salesforce(event: DatastreamEvent) -> str:
    if not event.at_ms:
        raise DecodeError(NO_ORDER, "source_timestamp is missing")
    return f"{event.at_ms:016x}"


POSITIONS: Mapping[str, tuple[Callable[[DatastreamEvent], str], int]] = {
    "mysql": (mysql, 32),
    "oracle": (oracle, 48),
    "postgresql": (postgresql, 16),
    "sqlserver": (sqlserver, 20),
    "mongodb": (mongodb, 32),
    "salesforce": (salesforce, 16),
}
"""Source → its position as digits, and their number."""


def width(source: str) -> int:
    """The number of digits of an order key without the epoch."""
    return POSITIONS[source][1] + 12


def event_position(source: str, backfill: bool, event: DatastreamEvent) -> str:
    """Class and position."""
    position, digits = POSITIONS[source]
    if not backfill:
        return f"{CHANGE}{position(event)}"
    if source == "oracle" and event.metadata.get("scn") is not None:
        return f"{BACKFILL}{read_number(event.metadata, 'scn', 20):020x}{event.read_ms:016x}{0:012x}"
    return f"{BACKFILL}{event.read_ms or event.at_ms:016x}".ljust(digits + 2, "0")


def ordinal(uuid: str) -> int:
    """The counter; 0 if the uuid has another form."""
    tail = uuid[-ORDINAL_DIGITS:]
    return int(tail, 2) if len(tail) == ORDINAL_DIGITS and not tail.strip("01") else 0


def milliseconds(value: Any) -> int:
    """From a number, or from ISO text (UTC if it has no zone); 0 if ``value`` is neither."""
    if type(value) is int:
        return value if 0 < value <= MAX_MS else 0
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return 0
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(0, int(time.timestamp() * 1000))


def to_datetime(ms: int) -> datetime | None:
    return datetime_of_us(ms * 1000) if ms else None
