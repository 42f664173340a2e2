"""YDB types as logical types, and converters for the values in a feed. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import column_texts, times, untyped_values, values
from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_SCHEMA,
    WRONG_NUMBER,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter, decimal_type
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

BY_NAME: Mapping[str, Kind] = {
    "bool": Kind.BOOLEAN,
    "int8": Kind.INT16,
    "uint8": Kind.INT16,
    "int16": Kind.INT16,
    "uint16": Kind.INT32,
    "int32": Kind.INT32,
    "uint32": Kind.INT64,
    "int64": Kind.INT64,
    "interval": Kind.INT64,
    "interval64": Kind.INT64,
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "date": Kind.DATE,
    "date32": Kind.DATE,
    "datetime": Kind.TIMESTAMPTZ,
    "datetime64": Kind.TIMESTAMPTZ,
    "timestamp": Kind.TIMESTAMPTZ,
    "timestamp64": Kind.TIMESTAMPTZ,
    "string": Kind.BYTES,
    "bytes": Kind.BYTES,
    "uuid": Kind.UUID,
    "json": Kind.JSON,
    "jsondocument": Kind.JSON,
    "yson": Kind.JSON,
}
UNSIGNED = {"uint8": 1 << 8, "uint16": 1 << 16, "uint32": 1 << 32, "uint64": 1 << 64}
SIGNED_BYTE = 1 << 7
DECIMAL = re.compile(r"decimal\((\d{1,3}),\s*(\d{1,3})\)")
TO_MICROSECONDS = len("2022-02-22T00:00:00.000000Z")
PER_UNIT_US = {"datetime64": 1_000_000, "timestamp64": 1}


def base_type(native: str) -> str:
    """``Optional<Uint64>`` and ``Uint64?`` are Uint64."""
    name = native.strip().lower()
    while name.endswith("?") or name.startswith("optional<"):
        name = name[:-1] if name.endswith("?") else name.removeprefix("optional<").removesuffix(">")
    return name


def logical_type(native: str) -> LogicalType:
    """A type without a counterpart is text, as written in the feed."""
    name = base_type(native)
    if name == "uint64":
        return decimal_type(20, 0)
    if match := DECIMAL.fullmatch(name):
        return decimal_type(int(match[1]), int(match[2]))
    return LogicalType(BY_NAME.get(name, Kind.TEXT))


def source_type(column: Column) -> LogicalType | None:
    """The type that ``native`` means; None if there is none."""
    return logical_type(column.native) if column.native else None


def _is_typed(column: Column) -> bool:
    """Whether the column has the type that ``native`` means: only then does that decide how its values are read."""
    return source_type(column) == column.type


def converter(column: Column, warn: Warn) -> Converter:
    name = base_type(column.native) if _is_typed(column) else ""
    if name in UNSIGNED:
        return _unsigned(UNSIGNED[name], column.type)
    if name == "int8":
        return _byte
    match column.type.kind:
        case Kind.DATE if name == "date32":
            return _number_or_text(times.date_of_days, times.date_of_text, warn)
        case Kind.DATE:
            return untyped_values.moment(times.date_of_text, "Date32", warn)
        case Kind.TIMESTAMPTZ:
            return _timestamps(PER_UNIT_US.get(name, 0), warn)
        case Kind.TIMESTAMP:
            return untyped_values.moment(times.timestamp_of_text, "Timestamp64", warn)
        case Kind.JSON:
            return values.document
        case Kind.TEXT:
            return untyped_values.text("Interval")
        case Kind.BYTES if column.native and not name:
            return _not_binary
        case _:
            return values.converter(column.type, warn)


def arrow_converter(column: Column) -> ArrowConverter | None:
    """As ``converter``, for Arrow columns; None if the type is not supported."""
    name, kind = base_type(column.native) if _is_typed(column) else "", column.type
    if name in UNSIGNED:
        return column_texts.integers_between(0, UNSIGNED[name] - 1, quotes=kind.kind is Kind.DECIMAL)
    if name == "int8":
        return column_texts.integers_between(-SIGNED_BYTE, SIGNED_BYTE - 1)
    if kind.kind is Kind.TIMESTAMPTZ:
        return column_texts.timestamps(PER_UNIT_US[name], "Z") if name in PER_UNIT_US else column_texts.iso_timestamps
    if kind.kind is Kind.DECIMAL and kind.precision is not None and kind.scale is not None:
        return column_texts.decimals(kind.precision, kind.scale)
    return None if kind.kind is Kind.JSON else column_texts.converter_of_kind(kind.kind)


def _not_binary(value: Any) -> str:
    raise DecodeError(NO_SCHEMA, "a column of bytes whose `native` is another type: `String`, or none")


def _unsigned(limit: int, kind: LogicalType) -> Converter:
    form = '"{}"' if kind.kind is Kind.DECIMAL else "{}"

    def convert(value: Any) -> str:
        if type(value) is not int:
            raise DecodeError(WRONG_VALUE, "not an integer")
        if not 0 <= value < limit:
            raise DecodeError(WRONG_NUMBER, "a number out of range for its unsigned type")
        return form.format(value)

    return convert


def _byte(value: Any) -> str:
    if type(value) is not int:
        raise DecodeError(WRONG_VALUE, "not an integer")
    if not -SIGNED_BYTE <= value < SIGNED_BYTE:
        raise DecodeError(WRONG_NUMBER, "a number out of range for Int8")
    return str(value)


def _number_or_text(
    of_number: Callable[[int, Warn], str], of_text: Callable[[str, Warn], str], warn: Warn
) -> Converter:
    return lambda value: of_number(value, warn) if type(value) is int else of_text(value, warn)


def _timestamps(unit_us: int, warn: Warn) -> Converter:
    """ISO text, always UTC; the 64-bit types are numbers of their units."""
    of_text = untyped_values.moment(times.timestamptz_of_text, "Timestamp64", warn)

    def convert(value: Any) -> str:
        if type(value) is int and unit_us:
            return times.timestamp_of_us(value * unit_us, warn, "Z")
        if isinstance(value, str) and len(value) <= TO_MICROSECONDS:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return of_text(value)  # outside the calendar, or invalid
            if moment.tzinfo is None or moment.tzinfo is UTC:
                return f'"{moment.replace(tzinfo=None).isoformat()}Z"'
        return of_text(value)

    return convert
