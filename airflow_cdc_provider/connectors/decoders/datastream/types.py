"""Datastream's unified types as logical types, and their values as canonical JSON. Pure.

A column's ``native`` is the short text of the Avro type, as ``long timestamp-micros`` or ``bytes decimal(10,2)``.
Values of JSON files have no type; they are decoded by the type of the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import extended_json, times, values
from airflow_cdc_provider.connectors.decoders.common.avro_file import without_null
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_NUMBER,
    WRONG_TIME,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, jsonable, number_or_text
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter, decimal_type
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

PRIMITIVES: Mapping[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT32,
    "long": Kind.INT64,
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "bytes": Kind.BYTES,
    "string": Kind.TEXT,
    "enum": Kind.TEXT,
}
LOGICAL: Mapping[str, Kind] = {
    "date": Kind.DATE,
    "timestamp-micros": Kind.TIMESTAMP,
    "timestamp-millis": Kind.TIMESTAMP,
    "time-micros": Kind.TEXT,
    "time-millis": Kind.TEXT,
    "time-interval-micros": Kind.TEXT,
    "json": Kind.JSON,
    "varchar": Kind.TEXT,
    "number": Kind.TEXT,
}
RECORDS: Mapping[frozenset[str], tuple[str, Kind]] = {
    frozenset({"timestamp", "offset"}): ("timestampTz", Kind.TIMESTAMPTZ),
    frozenset({"time", "offset"}): ("timeTz", Kind.TEXT),
    frozenset({"months", "hours", "micros"}): ("interval", Kind.JSON),
    frozenset({"year", "month", "day"}): ("calendarDate", Kind.DATE),
    frozenset({"value", "length"}): ("varchar", Kind.TEXT),
}
DECIMAL = re.compile(r"bytes decimal\((\d+),(\d+)\)")
MS_PER_MINUTE = 60_000


def column_of(field: Mapping[str, Any]) -> Column:
    """From a field of an Avro payload."""
    native, kind = _native_and_type(without_null(field["type"]))
    return Column(field["name"], kind, isinstance(field["type"], list), native)


def _native_and_type(kind: Any) -> tuple[str, LogicalType]:
    if not isinstance(kind, dict):
        plain = kind if isinstance(kind, str) else "union"
        return plain, LogicalType(PRIMITIVES.get(plain, Kind.JSON))
    name, logical = kind.get("type"), kind.get("logicalType")
    if name == "bytes" and logical == "decimal":
        precision, scale = kind.get("precision"), kind.get("scale", 0)
        if type(precision) is int and type(scale) is int:
            return f"bytes decimal({precision},{scale})", decimal_type(precision, scale)
    if isinstance(name, str) and isinstance(logical, str) and logical in LOGICAL:
        return f"{name} {logical}", LogicalType(LOGICAL[logical])
    if name == "record":
        members = frozenset(field["name"] for field in kind["fields"])
        if members in RECORDS:
            record, record_kind = RECORDS[members]
            return f"record {record}", LogicalType(record_kind)
        return "record", LogicalType(Kind.JSON)
    return str(name), LogicalType(PRIMITIVES.get(str(name), Kind.JSON))


def source_type(column: Column) -> LogicalType | None:
    """The type that ``native`` means; None if it is not a type of Datastream."""
    if match := DECIMAL.fullmatch(column.native):
        return decimal_type(int(match[1]), int(match[2]))
    name, _, logical = column.native.partition(" ")
    kind = dict(RECORDS.values()).get(logical) if name == "record" else LOGICAL.get(logical) or PRIMITIVES.get(name)
    return None if kind is None else LogicalType(kind)


def converter(column: Column, warn: Warn) -> Converter:
    native = column.native
    if match := DECIMAL.fullmatch(native):
        return _decimal(int(match[2]), column.type, warn)
    match column.type.kind:
        case Kind.DATE:
            return _dates(native, warn)
        case Kind.TIMESTAMP:
            unit_us = 1000 if native.endswith("timestamp-millis") else 1
            return _numbers_or_texts(lambda n: times.timestamp_of_us(n * unit_us, warn), times.timestamp_of_text, warn)
        case Kind.TIMESTAMPTZ:
            return _timestamps(warn)
        case Kind.TEXT:
            return _texts(native)
        case Kind.JSON:
            return _documents
        case Kind.BYTES:
            return _binary
        case Kind.FLOAT32 | Kind.FLOAT64:
            return _floating
        case _:
            return values.converter(column.type, warn)


def _decimal(scale: int, kind: LogicalType, warn: Warn) -> Converter:
    """Avro has the bytes of the unscaled number, JSON the number."""
    plain = values.converter(kind, warn) if kind.kind is Kind.DECIMAL else values.text

    def convert(value: Any) -> str:
        if not isinstance(value, bytes):
            return plain(value)
        number = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, values.EXACT_CONTEXT)
        return plain(number) if kind.kind is Kind.DECIMAL else f'"{number:f}"'

    return convert


def _numbers_or_texts(of_number: Converter, of_text: Callable[[str, Warn], str], warn: Warn) -> Converter:
    return lambda value: of_number(value) if type(value) is int else of_text(_with_t(value), warn)


def _with_t(value: Any) -> Any:
    """JSON files write times with a space or with a ``T``."""
    return value.replace(" ", "T", 1) if isinstance(value, str) and not value.startswith(" ") else value


def _dates(native: str, warn: Warn) -> Converter:
    def convert(value: Any) -> str:
        if isinstance(value, dict):
            return _calendar_date(value)
        if type(value) is int:
            if native.endswith(" date"):
                return times.date_of_days(value, warn)
            days, rest = divmod(value, 86_400_000_000)
            if rest:
                raise DecodeError(WRONG_TIME, "a date with a time of day")
            return times.date_of_days(days, warn)
        return times.date_of_text(_with_t(value), warn)

    return convert


def _calendar_date(value: Mapping[str, Any]) -> str:
    try:
        return f'"{date(value["year"], value["month"], value["day"]).isoformat()}"'
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DecodeError(WRONG_TIME, "not a date") from error


def _timestamps(warn: Warn) -> Converter:
    """The instant; no target stores the zone."""

    def convert(value: Any) -> str:
        if isinstance(value, dict):
            value = value.get("timestamp")
        if type(value) is int:
            return times.timestamp_of_us(value, warn, "Z")
        return times.timestamptz_of_text(_with_t(value), warn)

    return convert


def _texts(native: str) -> Converter:
    name = native.rpartition(" ")[2]

    def convert(value: Any) -> str:
        if isinstance(value, str):
            return encode_basestring(value)
        if isinstance(value, dict):
            return _time_with_zone(value) if "time" in value else _wrapped_text(value)
        if type(value) is int and name in ("time-micros", "time-interval-micros"):
            return times.time_of_us(value)
        if type(value) is int and name == "time-millis":
            return times.time_of_us(value * 1000)
        if isinstance(value, bool | bytes | list) or value is None:
            raise DecodeError(WRONG_VALUE, "not a string")
        return encode_basestring(str(value))

    return convert


def _wrapped_text(value: Mapping[str, Any]) -> str:
    """Old files wrap a text in a record with the length of its column."""
    text = value.get("value")
    if text is None:
        return "null"
    if not isinstance(text, str):
        raise DecodeError(WRONG_VALUE, "not a string")
    return encode_basestring(text)


def _time_with_zone(value: Mapping[str, Any]) -> str:
    offset = value.get("offset")
    if type(offset) is not int or abs(offset) >= 24 * 60 * MS_PER_MINUTE:
        raise DecodeError(WRONG_TIME, "a time of day with an invalid offset")
    hours, minutes = divmod(abs(offset) // MS_PER_MINUTE, 60)
    time = times.time_of_us(times.require_integer(value.get("time")))[:-1]
    sign = "-" if offset < 0 else "+"
    return f'{time}{sign}{hours:02d}:{minutes:02d}"'


def _documents(value: Any) -> str:
    return encode_basestring(extended_json.as_json(value) if isinstance(value, str) else dumps(jsonable(value)))


def _binary(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{base64_of(value)}"'
    return values.binary(value)


def _floating(value: Any) -> str:
    if type(value) is float:
        number = number_or_text(value)
        return f'"{number}"' if isinstance(number, str) else repr(number)
    if isinstance(value, bytes):
        raise DecodeError(WRONG_NUMBER, "not a number")
    return values.floating(value)
