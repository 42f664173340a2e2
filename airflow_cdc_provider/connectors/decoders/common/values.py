"""Values of JSON messages as canonical JSON, per kind of column. Pure.

A converter takes a value that is not null and returns JSON text, or raises Unreadable.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from json.encoder import encode_basestring
from math import isfinite
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_NUMBER, WRONG_VALUE, DecodeError, NotHeld
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.unrepresentable import NOT_A_NUMBER
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

Convert = Callable[[Any], str]
MOST_DIGITS = 38
LARGEST = {Kind.INT16: 1 << 15, Kind.INT32: 1 << 31, Kind.INT64: 1 << 63}
SPECIAL = {"NaN": "NaN", "nan": "NaN", "Infinity": "Infinity", "inf": "Infinity", "-Infinity": "-Infinity"}
SPECIAL |= {"-inf": "-Infinity", "+inf": "Infinity"}
EXACT = Context(prec=80, traps=[InvalidOperation, Inexact])


def decimal_type(precision: int | None, scale: int | None) -> LogicalType:
    """Text where no target has so many digits."""
    if precision and scale is not None and precision <= MOST_DIGITS and 0 <= scale <= precision:
        return LogicalType(Kind.DECIMAL, precision, scale)
    return LogicalType(Kind.TEXT)


def boolean(value: Any) -> str:
    """Some tell a truth value as a number, depending on where they learnt the table's definition."""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int and value in (0, 1):
        return "true" if value else "false"
    raise DecodeError(WRONG_VALUE, "not a boolean")


def integer(kind: Kind) -> Convert:
    limit = LARGEST[kind]

    def convert(value: Any) -> str:
        if type(value) is int:
            if not -limit <= value < limit:
                raise DecodeError(WRONG_NUMBER, f"a number larger than {kind} takes")
            return str(value)
        if type(value) is bool:
            return "1" if value else "0"
        raise DecodeError(WRONG_VALUE, "not a whole number")

    return convert


def floating(value: Any) -> str:
    if isinstance(value, str) and value in SPECIAL:
        return f'"{SPECIAL[value]}"'
    if type(value) is int or isinstance(value, Decimal):
        try:
            number = float(value)
        except OverflowError as error:
            raise DecodeError(WRONG_NUMBER, "a number larger than a float takes") from error
        if isfinite(number) and (number or not value):
            return repr(number)
        raise DecodeError(WRONG_NUMBER, "a number larger or smaller than a float takes")
    raise DecodeError(WRONG_VALUE, "not a number")


def exact(precision: int, scale: int) -> Convert:
    """A decimal told as number or text; digits that the column cannot hold are refused, never rounded away."""
    unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def convert(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise DecodeError(WRONG_VALUE, "not a decimal")
        if value in SPECIAL:
            raise NotHeld(NOT_A_NUMBER, str(value))
        try:
            number = Decimal(value)
            if not number.is_finite() or abs(number) >= limit:
                raise DecodeError(WRONG_NUMBER, f"not a number, or larger than decimal({precision},{scale}) takes")
            number = number.quantize(unit, context=EXACT)
        except (InvalidOperation, Inexact) as error:
            raise DecodeError(WRONG_NUMBER, f"not a decimal({precision},{scale})") from error
        return f'"{number if number else abs(number):f}"'

    return convert


def text(value: Any) -> str:
    """What is no text is told as its JSON."""
    return encode_basestring(value) if isinstance(value, str) else encode_basestring(dumps(value))


def only_text(value: Any) -> str:
    if not isinstance(value, str):
        raise DecodeError(WRONG_VALUE, "not a text")
    return encode_basestring(value)


def document(value: Any) -> str:
    """JSON that came inlined, as the text of a JSON column."""
    return encode_basestring(dumps(value))


def uuid(value: Any) -> str:
    try:
        return f'"{UUID(value)}"'
    except (AttributeError, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "not a UUID") from error


def decoded(value: Any) -> bytes:
    """The bytes of a base64 text."""
    try:
        return b64decode(value, validate=True)
    except (BadBase64, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "not base64") from error


def binary(value: Any) -> str:
    return f'"{b64encode(decoded(value)).decode("ascii")}"'


def converter(kind: LogicalType, warn: Warn) -> Convert:
    """For values that mean what they look like: numbers, texts, truth values, base64. Not for dates and times, which
    every format tells in its own way."""
    match kind.kind:
        case Kind.BOOLEAN:
            return boolean
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return integer(kind.kind)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return floating
        case Kind.DECIMAL:
            assert kind.precision is not None and kind.scale is not None
            return exact(kind.precision, kind.scale)
        case Kind.UUID:
            return uuid
        case Kind.BYTES:
            return binary
        case Kind.JSON:
            return text
        case _:
            return only_text
