"""Datastream's unified types as logical types. Pure.

A column's ``native`` is the short text of the Avro type, as ``long timestamp-micros`` or ``bytes decimal(10,2)``.
Values of JSON files have no type: there, a declared ``native`` says what a number, an object or a text of bytes means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import times, untyped_values
from airflow_cdc_provider.connectors.decoders.common import values as common_values
from airflow_cdc_provider.connectors.decoders.common.avro_file import without_null
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter, decimal_type
from airflow_cdc_provider.connectors.decoders.datastream import values
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
    "hex": Kind.BYTES,
}
RECORDS: Mapping[frozenset[str], tuple[str, Kind]] = {
    frozenset({"timestamp", "offset"}): ("timestampTz", Kind.TIMESTAMPTZ),
    frozenset({"time", "offset"}): ("timeTz", Kind.TEXT),
    frozenset({"months", "hours", "micros"}): ("interval", Kind.JSON),
    frozenset({"year", "month", "day"}): ("calendarDate", Kind.DATE),
    frozenset({"value", "length"}): ("varchar", Kind.TEXT),
}
DECIMAL = re.compile(r"bytes decimal\((\d+),(\d+)\)")


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
        return values.decimal(int(match[2]), column.type, warn)
    match column.type.kind:
        case Kind.DATE:
            of_text = _moments(times.date_of_text, "int date", warn)
            if native == "record calendarDate":
                return values.or_text(values.calendar_date, of_text)
            return values.of_number(native, lambda us: values.date_of_us(us, warn), of_text)
        case Kind.TIMESTAMP:
            of_text = _moments(times.timestamp_of_text, "long timestamp-micros", warn)
            return values.of_number(native, lambda us: times.timestamp_of_us(us, warn), of_text)
        case Kind.TIMESTAMPTZ:
            of_text = _moments(times.timestamptz_of_text, "long timestamp-micros", warn)
            if native == "record timestampTz":
                return values.or_text(lambda value: values.instant(value, warn), of_text)
            return values.of_number(native, lambda us: times.timestamp_of_us(us, warn, "Z"), of_text)
        case Kind.TEXT:
            return values.texts(native)
        case Kind.JSON:
            return values.documents(native)
        case Kind.BYTES:
            return values.binaries(native)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return values.floating
        case _:
            return common_values.converter(column.type, warn)


def _moments(of_text: Callable[[str, Warn], str], native: str, warn: Warn) -> Converter:
    return untyped_values.moment(lambda text, warn: of_text(values.with_t(text), warn), native, warn)
