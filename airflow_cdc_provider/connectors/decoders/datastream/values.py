"""Values of Datastream's events as canonical JSON. Pure.

Avro has numbers, bytes and records; JSON files have numbers, and texts of times and bytes. A number, an object or a
text of bytes that no ``native`` explains is refused, or kept as a whole (``untyped_values``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import extended_json, times, untyped_values, values
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_SCHEMA,
    WRONG_NUMBER,
    WRONG_TIME,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, jsonable, number_or_text
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

DAY_US = 86_400_000_000
MS_PER_MINUTE = 60_000
PER_UNIT_US: Mapping[str, int] = {"timestamp-micros": 1, "timestamp-millis": 1000, "date": DAY_US}
TIMES_OF_DAY_US: Mapping[str, int] = {"time-micros": 1, "time-interval-micros": 1, "time-millis": 1000}
EXTENDED = "extended JSON"
HEX = "string hex"
"""Not a type of Avro: the bytes of MySQL's BINARY, VARBINARY and BLOB, which arrive as a text."""
TEXTS_OF_JSON = frozenset({"string json", EXTENDED})
AVRO_DOCUMENTS = frozenset({"array", "fixed", "map", "record", "record interval", "union"})


def or_text(convert: Converter, of_text: Converter) -> Converter:
    return lambda value: of_text(value) if isinstance(value, str) else convert(value)


def of_number(native: str, of_us: Converter, of_other: Converter) -> Converter:
    """``of_us``: of a number of microseconds, if ``native`` names a unit."""
    per_unit_us = PER_UNIT_US.get(native.rpartition(" ")[2])
    if per_unit_us is None:
        return of_other
    return lambda value: of_us(value * per_unit_us) if type(value) is int else of_other(value)


def with_t(text: str) -> str:
    """JSON files write times with a space or with a ``T``."""
    return text if text.startswith(" ") else text.replace(" ", "T", 1)


def date_of_us(us: int, warn: Warn) -> str:
    days, rest = divmod(us, DAY_US)
    if rest:
        raise DecodeError(WRONG_TIME, "a date with a time of day")
    return times.date_of_days(days, warn)


def _members(value: Any, *names: str) -> list[Any]:
    """Of a record with these members and no others."""
    if not isinstance(value, dict) or value.keys() != set(names):
        raise DecodeError(WRONG_VALUE, f"not a record of {', '.join(names)}")
    return [value[name] for name in names]


def calendar_date(value: Any) -> str:
    parts = _members(value, "year", "month", "day")
    try:
        return f'"{date(*parts).isoformat()}"'
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(WRONG_TIME, "not a date") from error


def instant(value: Any, warn: Warn) -> str:
    """No target stores the zone."""
    us, _ = _members(value, "timestamp", "offset")
    return times.timestamp_of_us(us, warn, "Z")


def decimal(scale: int, kind: LogicalType, warn: Warn) -> Converter:
    """Avro has the bytes of the unscaled number, JSON the number."""
    convert = _digits if kind.kind is Kind.TEXT else values.converter(kind, warn)

    def of_bytes(value: Any) -> str:
        if isinstance(value, bytes):
            value = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, values.EXACT_CONTEXT)
        return convert(value)

    return of_bytes


def _digits(value: Any) -> str:
    """The text of a number, with all digits."""
    if isinstance(value, str):
        return encode_basestring(value)
    if not untyped_values.is_number(value):
        raise DecodeError(WRONG_VALUE, "not a number")
    return f'"{value:f}"' if isinstance(value, Decimal) else f'"{value}"'


def texts(native: str) -> Converter:
    per_unit_us = TIMES_OF_DAY_US.get(native.rpartition(" ")[2])
    if per_unit_us is not None:
        return or_text(lambda value: times.time_of_us(times.require_integer(value) * per_unit_us), encode_basestring)
    match native:
        case "string number":
            return _digits
        case _ if native == EXTENDED:
            return values.text
        case "record timeTz":
            return or_text(_time_with_zone, encode_basestring)
        case "record varchar":
            return or_text(_wrapped_text, encode_basestring)
    return untyped_values.text("long time-micros")


def _wrapped_text(value: Any) -> str:
    """Old files wrap a text in a record with the length of its column."""
    text, _ = _members(value, "value", "length")
    return "null" if text is None else values.only_text(text)


def _time_with_zone(value: Any) -> str:
    time_us, offset = _members(value, "time", "offset")
    if type(offset) is not int or abs(offset) >= 24 * 60 * MS_PER_MINUTE:
        raise DecodeError(WRONG_TIME, "a time of day with an invalid offset")
    hours, minutes = divmod(abs(offset) // MS_PER_MINUTE, 60)
    time = times.time_of_us(times.require_integer(time_us))[:-1]
    return f'{time}{"-" if offset < 0 else "+"}{hours:02d}:{minutes:02d}"'


def documents(native: str) -> Converter:
    if native in TEXTS_OF_JSON:
        return or_text(_inlined, lambda text: encode_basestring(extended_json.as_json(text)))
    return _inlined if native in AVRO_DOCUMENTS else _declared_document


def _inlined(value: Any) -> str:
    return encode_basestring(dumps(jsonable(value)))


def _declared_document(value: Any) -> str:
    """A text is that of an object or an array; any other may be a document that is a text."""
    if isinstance(value, str) and not (value.lstrip().startswith(("{", "[")) and untyped_values.is_json(value)):
        raise DecodeError(
            NO_SCHEMA,
            "a text in a JSON column, which is neither an object nor an array: declare `native: string json` if texts "
            "are those of documents",
        )
    return untyped_values.document(value)


def binaries(native: str) -> Converter:
    if native == "bytes":
        return lambda value: f'"{base64_of(value)}"' if isinstance(value, bytes) else values.binary(value)
    return values.hex_binary if native == HEX else _undeclared_binary


def _undeclared_binary(value: Any) -> str:
    if not isinstance(value, str):
        raise DecodeError(WRONG_VALUE, "not bytes")
    raise DecodeError(
        NO_SCHEMA,
        f"bytes as a text that may be base64 or hex: declare `native: bytes` for base64, or `native: {HEX}` for hex, "
        "which MySQL's BINARY, VARBINARY and BLOB have",
    )


def floating(value: Any) -> str:
    if type(value) is float:
        number = number_or_text(value)
        return f'"{number}"' if isinstance(number, str) else repr(number)
    if isinstance(value, bytes):
        raise DecodeError(WRONG_NUMBER, "not a number")
    return values.floating(value)
