"""Where in its source an event of Datastream stands, and its order key.

    order key = epoch 8 · class 2 · place · ordinal 8 · phase 2, all digits hex

Class 00 are rows that a backfill met, 01 changes: any change of a key beats a backfill of it. Among backfills the later
reading wins.

| source | place |
|---|---|
| mysql | number of the log file 16 · position 16 |
| oracle | SCN 20 · record set 20 · SQL number 8 |
| postgresql | LSN 16 |
| sqlserver | LSN 20 |
| mongodb | seconds 16 · ordinal in the second 16 |
| salesforce | time in milliseconds 16 |

Times come last or not at all: the second half of a key change was seen a second after the first, and clocks go back.
The ordinal is the counter at the end of the event's uuid, in binary digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us
from airflow_cdc_provider.connectors.decoders.debezium.positions import lsn_digits, number, record_set_digits
from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn

BACKFILL, CHANGE = "00", "01"
ORDINAL_DIGITS = 8
LARGEST_MS = (1 << 63) - 1


class DatastreamEvent(NamedTuple):
    """``at_ms``: when the source changed, ``read_ms``: when it was read; 0 where nobody tells."""

    metadata: Mapping[str, Any]
    sort_keys: Sequence[Any]
    at_ms: int
    read_ms: int


def mysql(event: DatastreamEvent) -> str:
    name = event.metadata.get("log_file")
    suffix = name.rpartition(".")[2] if isinstance(name, str) else ""
    if not (suffix.isdecimal() and suffix.isascii() and len(suffix) < 16):
        raise DecodeError(NO_ORDER, "the metadata name no log file with a number")
    return f"{int(suffix):016x}{number(event.metadata, 'log_position', 16):016x}"


def oracle(event: DatastreamEvent) -> str:
    ssn = number(event.metadata, "ssn", 8, 0)
    return f"{number(event.metadata, 'scn', 20):020x}{record_set_digits(event.metadata.get('rs_id'))}{ssn:08x}"


def postgresql(event: DatastreamEvent) -> str:
    told = event.metadata.get("lsn")
    try:
        lsn = parse_lsn(told) if isinstance(told, str) and told.count("/") == 1 and "_" not in told else -1
    except ValueError:
        lsn = -1
    if not 0 <= lsn < 1 << 64:
        raise DecodeError(NO_ORDER, "lsn is no place in the log")
    return f"{lsn:016x}"


def sqlserver(event: DatastreamEvent) -> str:
    return lsn_digits(event.metadata.get("lsn"), "lsn")


def mongodb(event: DatastreamEvent) -> str:
    if len(event.sort_keys) < 2:
        raise DecodeError(NO_ORDER, "there are no sort_keys")
    keys = {"seconds": event.sort_keys[0], "ordinal": event.sort_keys[1]}
    return f"{number(keys, 'seconds', 16):016x}{number(keys, 'ordinal', 16):016x}"


def salesforce(event: DatastreamEvent) -> str:
    if not event.at_ms:
        raise DecodeError(NO_ORDER, "there is no source_timestamp")
    return f"{event.at_ms:016x}"


PLACES: Mapping[str, tuple[Callable[[DatastreamEvent], str], int]] = {
    "mysql": (mysql, 32),
    "oracle": (oracle, 48),
    "postgresql": (postgresql, 16),
    "sqlserver": (sqlserver, 20),
    "mongodb": (mongodb, 32),
    "salesforce": (salesforce, 16),
}
"""Source -> how it tells places, and their digits."""


def width(source: str) -> int:
    """Digits of an order key behind the epoch."""
    return PLACES[source][1] + 12


def event_position(source: str, backfill: bool, event: DatastreamEvent) -> str:
    """Class and place."""
    of, digits = PLACES[source]
    if not backfill:
        return f"{CHANGE}{of(event)}"
    if source == "oracle" and event.metadata.get("scn") is not None:
        return f"{BACKFILL}{number(event.metadata, 'scn', 20):020x}{event.read_ms:016x}{0:012x}"
    return f"{BACKFILL}{event.read_ms or event.at_ms:016x}".ljust(digits + 2, "0")


def ordinal(uuid: str) -> int:
    """The counter; 0 where the uuid is one of another kind."""
    tail = uuid[-ORDINAL_DIGITS:]
    return int(tail, 2) if len(tail) == ORDINAL_DIGITS and not tail.strip("01") else 0


def milliseconds(told: Any) -> int:
    """A number, or ISO text with a T or a blank, UTC where it names no zone; 0 where it is neither."""
    if type(told) is int:
        return told if 0 < told <= LARGEST_MS else 0
    try:
        moment = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, int(moment.timestamp() * 1000))


def shown(ms: int) -> datetime | None:
    return moment_of_us(ms * 1000) if ms else None
