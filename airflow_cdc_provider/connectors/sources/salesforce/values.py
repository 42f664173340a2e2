"""One value as canonical JSON, whichever way it came: text of a bulk result, JSON of REST, Avro of an event. Pure.

All three go through the same Python value, so a row copied and the same row streamed have the same bytes. An empty text
is NULL on every road: Salesforce knows no empty text, and a bulk result cannot tell the two apart.
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
"""Meanings of fields that it keeps as decimals and sends as doubles. Places on the map are doubles there, too."""

Convert = Callable[[Any], str]
FromAvro = Callable[[Any], str | None]


class WrongValue(ValueError):
    """The value is none of its column's type. Says the type, never the value."""


def from_text(kind: LogicalType) -> Convert:
    """From a cell of a CSV result; None or empty is NULL."""
    parse = _parser(kind)
    return lambda cell: NULL if cell is None or cell == "" else parse(cell)


def from_json(kind: LogicalType) -> Convert:
    """From a JSON value whose reals were read as Decimal."""
    parse = _parser(kind)
    return lambda value: NULL if value is None or value == "" else parse(value)


def from_avro(kind: LogicalType, meaning: str, avro: str) -> FromAvro | None:
    """From an event's value: a number of milliseconds where ``meaning`` is a date or time. None where a value of that
    meaning cannot become one of ``kind``: the field had another type when the event was written. The answer, too, is
    None where only the source can tell the value."""
    match meaning, kind.kind:
        case ("DateOnly", Kind.DATE) | ("", Kind.DATE):
            convert: FromAvro | None = _quoted(_date_of_ms)
        case ("DateTime", Kind.TIMESTAMPTZ) | ("", Kind.TIMESTAMPTZ):
            convert = _quoted(_moment_of_ms)
        case "TimeOnly", Kind.TEXT:
            convert = _quoted(_time_of_ms)
        case "DateOnly" | "DateTime" | "TimeOnly", _:
            convert = None
        case _, Kind.DECIMAL if meaning in DECIMALS_OF_SALESFORCE and avro in _REAL:
            convert = _held(kind, _parser(kind))
        case _:
            convert = _parser(kind) if avro in _AVRO[kind.kind] else None
    if convert is None:
        return None
    return lambda value: NULL if value is None or value == "" else convert(value)


def _held(kind: LogicalType, convert: Convert) -> FromAvro:
    """Where the next double is further away than one unit of the scale, several decimals become the same double."""
    assert kind.precision is not None and kind.scale is not None
    unit, limit = 10.0**-kind.scale, 10.0 ** (kind.precision - kind.scale)

    def told(value: Any) -> str | None:
        if type(value) is float and abs(value) <= limit and ulp(value) > unit:
            return None
        return convert(value)

    return told


_REAL = frozenset({"double", "float", "int", "long"})
_AVRO: dict[Kind, frozenset[str]] = {kind: frozenset() for kind in Kind} | {
    Kind.BOOLEAN: frozenset({"boolean"}),
    Kind.INT32: frozenset({"int", "long"}),
    Kind.INT64: frozenset({"int", "long"}),
    Kind.DECIMAL: _REAL,
    Kind.FLOAT64: _REAL,
    Kind.TEXT: frozenset({"string"}),
}


def _parser(kind: LogicalType) -> Convert:
    match kind.kind:
        case Kind.BOOLEAN:
            return _boolean
        case Kind.INT32 | Kind.INT64:
            return _integer
        case Kind.DECIMAL:
            assert kind.precision is not None and kind.scale is not None
            return _decimal(kind.precision, kind.scale)
        case Kind.FLOAT64:
            return _float
        case Kind.DATE:
            return _date
        case Kind.TIMESTAMPTZ:
            return _moment
        case _:
            return _text


def _boolean(value: Any) -> str:
    if value is True or value == "true":
        return "true"
    if value is False or value == "false":
        return "false"
    raise WrongValue("not a boolean")


def _integer(value: Any) -> str:
    """Older interfaces print whole numbers as ``7.0``."""
    if type(value) is int:
        return str(value)
    number = _number(value, "a whole number")
    if number != number.to_integral_value():
        raise WrongValue("not a whole number")
    return str(int(number))


def _decimal(precision: int, scale: int) -> Convert:
    """Rounded half up to the described scale: what is behind it shows neither in Salesforce."""
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def convert(value: Any) -> str:
        if type(value) is float and (plain := _plain(value, precision - scale, scale)):
            return plain
        try:
            number = _number(value, "a decimal").quantize(unit, context=EXACT)
        except InvalidOperation:  # more digits than any decimal type has
            number = limit
        if abs(number) >= limit:
            raise WrongValue(f"more digits than decimal({precision},{scale}) takes")
        return f'"{number if number else abs(number):f}"'

    return convert


def _plain(value: float, before: int, behind: int) -> str:
    """A number with few enough digits on either side of the point, which is nearly every one: its own text, in a fifth
    of the time. Empty for all others."""
    whole, _, part = repr(value).partition(".")
    part = "" if part == "0" else part
    if not value or len(whole) > before or len(part) > behind or not f"{whole.lstrip('-')}{part}".isdecimal():
        return ""
    return f'"{whole}.{part:0<{behind}}"' if behind else f'"{whole}"'


def _number(value: Any, what: str) -> Decimal:
    """The shortest text of a float gives it back, so its digits are those that were written."""
    try:
        number = value if isinstance(value, Decimal) else Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError) as error:
        raise WrongValue(f"not {what}") from error
    if not number.is_finite():
        raise WrongValue(f"not {what}")
    return number


def _float(value: Any) -> str:
    return repr(float(_number(value, "a number")))


def _date(value: str) -> str:
    try:
        return f'"{date.fromisoformat(value).isoformat()}"'
    except (TypeError, ValueError) as error:
        raise WrongValue("not a date") from error


def _moment(value: str) -> str:
    """``2026-02-01T10:00:00.000+0000``, or with ``Z``."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise WrongValue("not a time") from error
    if moment.tzinfo is None:
        raise WrongValue("a time without zone")
    return f'"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"'


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValue("not a text")
    return encode_basestring(value)


def _quoted(tell: Callable[[int], str]) -> Convert:
    def convert(value: int) -> str:
        try:
            return f'"{tell(value)}"'
        except (OverflowError, TypeError) as error:
            raise WrongValue("not a number of milliseconds") from error

    return convert


def _date_of_ms(value: int) -> str:
    """Midnight in UTC; no other zone may come into it."""
    return (EPOCH_DATE + timedelta(days=value // DAY_MS)).isoformat()


def _moment_of_ms(value: int) -> str:
    return f"{(EPOCH + timedelta(milliseconds=value)).isoformat()}Z"


def _time_of_ms(value: int) -> str:
    if not 0 <= value < DAY_MS:
        raise OverflowError
    return f"{(EPOCH + timedelta(milliseconds=value)).time().isoformat('milliseconds')}Z"
