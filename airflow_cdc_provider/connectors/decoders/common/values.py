"""Values of JSON messages as canonical JSON, per kind of column. Pure.

A converter takes a value that is not null and returns JSON text, or raises DecodeError.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from json.encoder import encode_basestring
from math import isfinite
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    WRONG_NUMBER,
    WRONG_VALUE,
    DecodeError,
    UnrepresentableValue,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.unrepresentable import NOT_A_NUMBER
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

Converter = Callable[[Any], str]
MAX_DIGITS = 38
INTEGER_LIMITS = {Kind.INT16: 1 << 15, Kind.INT32: 1 << 31, Kind.INT64: 1 << 63}
NON_FINITE = {"NaN": "NaN", "nan": "NaN", "Infinity": "Infinity", "inf": "Infinity", "-Infinity": "-Infinity"}
NON_FINITE |= {"-inf": "-Infinity", "+inf": "Infinity"}
HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
EXACT_CONTEXT = Context(prec=80, traps=[InvalidOperation, Inexact])


def decimal_type(precision: int | None, scale: int | None) -> LogicalType:
    """Text if no target type has that many digits."""
    if precision and scale is not None and precision <= MAX_DIGITS and 0 <= scale <= precision:
        return LogicalType(Kind.DECIMAL, precision, scale)
    return LogicalType(Kind.TEXT)


def boolean(value: Any) -> str:
    """Some connectors send a boolean as a number, depending on where they read the table definition from."""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int and value in (0, 1):
        return "true" if value else "false"
    raise DecodeError(WRONG_VALUE, "not a boolean")


def integer(kind: Kind) -> Converter:
    limit = INTEGER_LIMITS[kind]

    def convert(value: Any) -> str:
        if type(value) is int:
            if not -limit <= value < limit:
                raise DecodeError(WRONG_NUMBER, f"a number out of range for {kind}")
            return str(value)
        if type(value) is bool:
            return "1" if value else "0"
        raise DecodeError(WRONG_VALUE, "not an integer")

    return convert


def floating(value: Any) -> str:
    if isinstance(value, str) and value in NON_FINITE:
        return f'"{NON_FINITE[value]}"'
    if type(value) is int or isinstance(value, Decimal):
        try:
            number = float(value)
        except OverflowError as error:
            raise DecodeError(WRONG_NUMBER, "a number out of range for a float") from error
        if isfinite(number) and (number or not value):
            return repr(number)
        raise DecodeError(WRONG_NUMBER, "a number out of range for a float")
    raise DecodeError(WRONG_VALUE, "not a number")


def decimal(precision: int, scale: int) -> Converter:
    """A decimal given as number or text. Digits that the column cannot store raise DecodeError; nothing is rounded."""
    unit, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)

    def convert(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise DecodeError(WRONG_VALUE, "not a decimal")
        if value in NON_FINITE:
            raise UnrepresentableValue(NOT_A_NUMBER, str(value))
        try:
            number = Decimal(value)
            if not number.is_finite() or abs(number) >= limit:
                raise DecodeError(WRONG_NUMBER, f"not a number, or out of range for decimal({precision},{scale})")
            number = number.quantize(unit, context=EXACT_CONTEXT)
        except (InvalidOperation, Inexact) as error:
            raise DecodeError(WRONG_NUMBER, f"not a decimal({precision},{scale})") from error
        return f'"{number if number else abs(number):f}"'

    return convert


def text(value: Any) -> str:
    """The text in the message: a value that is not a string becomes its JSON text."""
    return encode_basestring(value) if isinstance(value, str) else encode_basestring(dumps(value))


def only_text(value: Any) -> str:
    if not isinstance(value, str):
        raise DecodeError(WRONG_VALUE, "not a string")
    return encode_basestring(value)


def document(value: Any) -> str:
    """Inlined JSON as the text of a JSON column."""
    return encode_basestring(dumps(value))


def uuid(value: Any) -> str:
    try:
        return f'"{UUID(value)}"'
    except (AttributeError, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "not a UUID") from error


def decode_base64(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (Base64Error, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "not base64") from error


def binary(value: Any) -> str:
    return _bytes_text(decode_base64(value))


def url_safe_binary(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or "+" in value or "/" in value:
        raise DecodeError(WRONG_VALUE, "not base64 of the alphabet for URLs")
    return binary(value.replace("-", "+").replace("_", "/"))


def hex_binary(value: Any) -> str:
    if not isinstance(value, str) or not HEX.fullmatch(value):
        raise DecodeError(WRONG_VALUE, "not bytes in hex")
    return _bytes_text(bytes.fromhex(value))


def _bytes_text(content: bytes) -> str:
    return f'"{b64encode(content).decode("ascii")}"'


def converter(kind: LogicalType, warn: Warn) -> Converter:
    """For values whose JSON type matches the kind: numbers, strings, booleans, base64. Not for dates and times, whose
    encoding depends on the format."""
    match kind.kind:
        case Kind.BOOLEAN:
            return boolean
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return integer(kind.kind)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return floating
        case Kind.DECIMAL:
            assert kind.precision is not None and kind.scale is not None
            return decimal(kind.precision, kind.scale)
        case Kind.UUID:
            return uuid
        case Kind.BYTES:
            return binary
        case Kind.JSON:
            return text
        case _:
            return only_text
