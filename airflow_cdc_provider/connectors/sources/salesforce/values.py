"""Convert a value to canonical JSON: text of a bulk result, JSON of REST, Avro of an event. Pure.

All three go through the same Python value, so a copied row and the same row from the stream have the same bytes. An
empty text is always NULL: Salesforce has no empty text, and a bulk result has one representation of both.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from json.encoder import encode_basestring
from math import ulp
from typing import Any

from airflow_cdc_provider.core.table.schema import Kind, LogicalType

NULL = "null"
DAY_MS = 86_400_000
EPOCH = datetime(1970, 1, 1)
EPOCH_DATE = EPOCH.date()
EXACT = Context(prec=76, rounding=ROUND_HALF_UP)

DECIMALS_OF_SALESFORCE = frozenset({"Currency", "Double", "Percent"})
"""Data types that Salesforce stores as decimals and sends as doubles. Geolocations are stored as doubles."""

Convert = Callable[[Any], str]
FromAvro = Callable[[Any], str | None]


class WrongValue(ValueError):
    """The value does not have its column's type. The text contains the type, never the value."""


class MoreDigits(WrongValue):
    """The value is a number with more digits than its column's type."""


def from_text(kind: LogicalType, exact: bool = False) -> Convert:
    """From a cell of a CSV result; None or empty is NULL. ``exact``: raises MoreDigits instead of rounding."""
    parse = _parser(kind, exact)
    return lambda cell: NULL if cell is None or cell == "" else parse(cell)


def from_json(kind: LogicalType, exact: bool = False) -> Convert:
    """From a JSON value whose real numbers were read as Decimal. ``exact``: raises MoreDigits instead of rounding."""
    parse = _parser(kind, exact)
    return lambda value: NULL if value is None or value == "" else parse(value)


def from_avro(kind: LogicalType, data_type: str, avro: str, exact: bool = False) -> FromAvro | None:
    """From an event's value: milliseconds if ``data_type`` is a date or time. None if the type cannot be converted to
    ``kind``: the field had another type when the event was written. The converter returns None if the value must be
    fetched from the source. ``exact``: it raises MoreDigits instead of rounding."""
    match data_type, kind.kind:
        case ("DateOnly", Kind.DATE) | ("", Kind.DATE):
            convert: FromAvro | None = _from_ms(_date_of_ms)
        case ("DateTime", Kind.TIMESTAMPTZ) | ("", Kind.TIMESTAMPTZ):
            convert = _from_ms(_timestamp_of_ms)
        case "TimeOnly", Kind.TEXT:
            convert = _from_ms(_time_of_ms)
        case "DateOnly" | "DateTime" | "TimeOnly", _:
            convert = None
        case _, Kind.DECIMAL if data_type in DECIMALS_OF_SALESFORCE and avro in _REAL:
            convert = _unless_ambiguous(kind, _parser(kind, exact))
        case _:
            convert = _parser(kind, exact) if avro in _AVRO[kind.kind] else None
    if convert is None:
        return None
    return lambda value: NULL if value is None or value == "" else convert(value)


def _unless_ambiguous(kind: LogicalType, convert: Convert) -> FromAvro:
    """If the next double differs by more than one unit of the scale, several decimals have the same double."""
    assert kind.precision is not None and kind.scale is not None
    unit, limit = 10.0**-kind.scale, 10.0 ** (kind.precision - kind.scale)

    def convert_unambiguous(value: Any) -> str | None:
        if type(value) is float and abs(value) <= limit and ulp(value) > unit:
            return None
        return convert(value)

    return convert_unambiguous


_REAL = frozenset({"double", "float", "int", "long"})
_AVRO: dict[Kind, frozenset[str]] = {kind: frozenset() for kind in Kind} | {
    Kind.BOOLEAN: frozenset({"boolean"}),
    Kind.INT32: frozenset({"int", "long"}),
    Kind.INT64: frozenset({"int", "long"}),
    Kind.DECIMAL: _REAL,
    Kind.FLOAT64: _REAL,
    Kind.TEXT: frozenset({"string"}),
}


def _parser(kind: LogicalType, exact: bool = False) -> Convert:
    match kind.kind:
        case Kind.BOOLEAN:
            return _boolean
        case Kind.INT32 | Kind.INT64:
            return _integer
        case Kind.DECIMAL:
            assert kind.precision is not None and kind.scale is not None
            return _decimal(kind.precision, kind.scale, exact)
        case Kind.FLOAT64:
            return _float
        case Kind.DATE:
            return _date
        case Kind.TIMESTAMPTZ:
            return _timestamp
        case _:
            return _text


def _boolean(value: Any) -> str:
    if value is True or value == "true":
        return "true"
    if value is False or value == "false":
        return "false"
    raise WrongValue("not a boolean")


def _integer(value: Any) -> str:
    """Older API versions print integers as ``7.0``."""
    if type(value) is int:
        return str(value)
    number = _number(value, "an integer")
    if number != number.to_integral_value():
        raise WrongValue("not an integer")
    return str(int(number))


def _decimal(precision: int, scale: int, exact: bool) -> Convert:
    """Rounded half up to the described scale, unless ``exact``: Salesforce does not show further digits either."""
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> str:
        if type(value) is float and (text := _short_decimal(value, precision - scale, scale)):
            return text
        given = _number(value, "a decimal")
        try:
            number = given.quantize(unit, context=EXACT)
        except InvalidOperation:  # more digits than any decimal type has
            number = limit
        if exact and (abs(number) >= limit or number != given):
            raise MoreDigits(f"more digits than decimal({precision},{scale}) has")
        if abs(number) >= limit:
            raise WrongValue(f"more digits than decimal({precision},{scale}) has")
        return f'"{number if number else abs(number):f}"'

    return convert


def _short_decimal(value: float, integer_digits: int, scale: int) -> str:
    """Fast path, five times as fast, for numbers that need no rounding, which are nearly all; empty for others."""
    integer, _, fraction = repr(value).partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = f"{integer.lstrip('-')}{fraction}"
    if not value or len(integer) > integer_digits or len(fraction) > scale or not digits.isdecimal():
        return ""
    return f'"{integer}.{fraction:0<{scale}}"' if scale else f'"{integer}"'


def _number(value: Any, expected: str) -> Decimal:
    """``repr`` of a float is its shortest exact text, whose digits are those that were written."""
    try:
        number = value if isinstance(value, Decimal) else Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError) as error:
        raise WrongValue(f"not {expected}") from error
    if not number.is_finite():
        raise WrongValue(f"not {expected}")
    return number


def _float(value: Any) -> str:
    return repr(float(_number(value, "a number")))


def _date(value: str) -> str:
    try:
        return f'"{date.fromisoformat(value).isoformat()}"'
    except (TypeError, ValueError) as error:
        raise WrongValue("not a date") from error


def _timestamp(value: str) -> str:
    """``2026-02-01T10:00:00.000+0000``, or with ``Z``."""
    try:
        timestamp = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise WrongValue("not a timestamp") from error
    if timestamp.tzinfo is None:
        raise WrongValue("a timestamp without time zone")
    return f'"{timestamp.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"'


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValue("not a text")
    return encode_basestring(value)


def _from_ms(to_text: Callable[[int], str]) -> Convert:
    def convert(value: int) -> str:
        try:
            return f'"{to_text(value)}"'
        except (OverflowError, TypeError) as error:
            raise WrongValue("not a number of milliseconds") from error

    return convert


def _date_of_ms(value: int) -> str:
    """Dates are sent as midnight in UTC."""
    return (EPOCH_DATE + timedelta(days=value // DAY_MS)).isoformat()


def _timestamp_of_ms(value: int) -> str:
    return f"{(EPOCH + timedelta(milliseconds=value)).isoformat()}Z"


def _time_of_ms(value: int) -> str:
    if not 0 <= value < DAY_MS:
        raise OverflowError
    return f"{(EPOCH + timedelta(milliseconds=value)).time().isoformat('milliseconds')}Z"
