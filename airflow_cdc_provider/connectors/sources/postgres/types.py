"""Maps PostgreSQL's types to logical types, and its output text to canonical JSON.

Converters take a cell of ``messages`` (one character per byte) and return JSON text. A value that the logical type does
not have raises Unrepresentable; it is NULL if a second column has its text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from typing import NoReturn

from airflow_cdc_provider.connectors.unrepresentable import INFINITE, NOT_A_NUMBER, OTHER_YEAR, Unrepresentable
from airflow_cdc_provider.core.spec.filters import OutOfRange, Value
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema

BY_OID: Mapping[int, Kind] = {
    16: Kind.BOOLEAN,
    17: Kind.BYTES,
    20: Kind.INT64,
    21: Kind.INT16,
    23: Kind.INT32,
    26: Kind.INT64,
    114: Kind.JSON,
    700: Kind.FLOAT32,
    701: Kind.FLOAT64,
    1082: Kind.DATE,
    1114: Kind.TIMESTAMP,
    1184: Kind.TIMESTAMPTZ,
    2950: Kind.UUID,
    3802: Kind.JSON,
}
NUMERIC = 1700
MAX_PRECISION = 38
FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
NO_TYPMOD = -1

JSON_NUMBER = re.compile("-?(0|[1-9][0-9]*)([.][0-9]+)?(e[+-][0-9]+)?")

Domains = Mapping[int, tuple[int, int]]
"""Oid of a domain -> oid and typmod of its base type."""

Converter = Callable[[str], str]


def logical_type(oid: int, typmod: int, domains: Domains) -> LogicalType:
    while oid in domains:
        oid, typmod = domains[oid]
    if oid == NUMERIC:
        return _numeric_type(typmod)
    return LogicalType(BY_OID.get(oid, Kind.TEXT))


def _numeric_type(typmod: int) -> LogicalType:
    """The typmod of numeric contains the precision and a signed scale of 11 bits, plus an offset of 4."""
    if typmod != NO_TYPMOD:
        precision, scale = (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 1024) - 1024
        if precision <= MAX_PRECISION and 0 <= scale <= precision:
            return LogicalType(Kind.DECIMAL, precision, scale)
    return LogicalType(Kind.TEXT)


def converters(schema: TableSchema) -> list[Converter]:
    """One per column of the schema. A column that has the text of another column gets that column's cell."""
    return [
        _text_of(schema.column(column.text_of).type.kind)
        if column.text_of
        else _or_null(converter(column.type.kind))
        if schema.has_text_of(column.name)
        else _unsigned_zero
        if column.name in schema.key and column.type.kind in FLOATS
        else converter(column.type.kind)
        for column in schema.columns
    ]


def _or_null(convert: Converter) -> Converter:
    def converted(cell: str) -> str:
        try:
            return convert(cell)
        except Unrepresentable:
            return "null"

    return converted


def _text_of(kind: Kind) -> Converter:
    convert = converter(kind)

    def converted(cell: str) -> str:
        try:
            convert(cell)
        except Unrepresentable:
            return _text(cell)
        return "null"

    return converted


def converter(kind: Kind) -> Converter:
    match kind:
        case Kind.BOOLEAN:
            return _boolean
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return _integer
        case Kind.FLOAT32 | Kind.FLOAT64:
            return _float
        case Kind.DECIMAL:
            return _decimal
        case Kind.TEXT | Kind.JSON:
            return _text
        case Kind.UUID:
            return encode_basestring
        case Kind.BYTES:
            return _bytes
        case Kind.DATE:
            return _date
        case Kind.TIMESTAMP:
            return _timestamp
        case Kind.TIMESTAMPTZ:
            return _timestamptz


def python_value(kind: Kind, cell: str | None) -> Value | None:
    """The value that a row filter compares. Kinds other than numbers, booleans and times are compared as text."""
    if cell is None:
        return None
    match kind:
        case Kind.BOOLEAN:
            return cell == "t"
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return int(cell)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return float(cell)
        case Kind.DECIMAL:
            return Decimal(cell) if cell[-1].isdecimal() else None
        case Kind.DATE:
            return _time(date.fromisoformat, kind, cell)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _time(datetime.fromisoformat, kind, cell)
        case Kind.TEXT | Kind.JSON | Kind.UUID | Kind.BYTES:
            return cell.encode("latin-1").decode("utf-8")


def _time(parsed: Callable[[str], date | datetime], kind: Kind, cell: str) -> Value:
    try:
        return parsed(converter(kind)(cell)[1:-1])
    except Unrepresentable:
        return OutOfRange(kind, after=cell[0] != "-" and not cell.endswith("BC"))


def as_cell(text: str) -> str:
    """The text of an ordinary query in the form of a cell."""
    return text.encode("utf-8").decode("latin-1")


def _boolean(cell: str) -> str:
    if cell == "t":
        return "true"
    if cell == "f":
        return "false"
    raise ValueError(f"boolean {cell[:10]!r}")


def _integer(cell: str) -> str:
    return cell if cell.isdecimal() and (cell[0] != "0" or cell == "0") else str(int(cell))


def _float(cell: str) -> str:
    """PostgreSQL prints the shortest exact text, which is valid JSON except -0: a JSON reader makes it an integer."""
    if JSON_NUMBER.fullmatch(cell) and isfinite(float(cell)):
        return "-0.0" if cell == "-0" else cell
    if cell in ("NaN", "Infinity", "-Infinity"):
        return f'"{cell}"'
    raise ValueError(f"float {cell[:10]!r}")


def _unsigned_zero(cell: str) -> str:
    """In a key of PostgreSQL 0 and -0 are equal."""
    text = _float(cell)
    return "0" if text == "-0.0" else text


def _decimal(cell: str) -> str:
    if cell[-1].isdecimal():
        return encode_basestring(cell)
    if cell in ("NaN", "Infinity", "-Infinity"):
        raise Unrepresentable(NOT_A_NUMBER)
    raise ValueError(f"numeric {cell[:10]!r}")


def _text(cell: str) -> str:
    return encode_basestring(cell if cell.isascii() else cell.encode("latin-1").decode("utf-8"))


def _bytes(cell: str) -> str:
    if cell[:2] != "\\x":
        raise ValueError(f"bytea {cell[:10]!r}")
    return f'"{b64encode(bytes.fromhex(cell[2:])).decode("ascii")}"'


def _date(cell: str) -> str:
    return encode_basestring(cell if len(cell) == 10 else _raise_unrepresentable(cell))


def _timestamp(cell: str) -> str:
    return encode_basestring(_iso_time(cell))


def _timestamptz(cell: str) -> str:
    return encode_basestring((_iso_time(cell[:-3]) if cell[-3:] == "+00" else _raise_unrepresentable(cell)) + "Z")


def _iso_time(cell: str) -> str:
    """``2024-05-06 07:08:09[.123456]``; trailing zeros of the fraction are not printed."""
    if len(cell) == 19:
        return f"{cell[:10]}T{cell[11:]}"
    if 21 <= len(cell) <= 26 and cell[4] == "-" and cell[19] == "." and cell[-1].isdecimal():
        return f"{cell[:10]}T{cell[11:]:0<15}"
    return _raise_unrepresentable(cell)


def _raise_unrepresentable(cell: str) -> NoReturn:
    """``infinity``, ``-infinity``, years before 1 (``… BC``) and years after 9999."""
    if cell in ("infinity", "-infinity"):
        raise Unrepresentable(INFINITE)
    if cell[:1].isdecimal() and (cell.endswith(" BC") or cell.find("-") > 4):
        raise Unrepresentable(OTHER_YEAR)
    raise ValueError(f"date or time {cell[:40]!r}")
