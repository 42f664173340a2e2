"""Conversions of values to another type. A value is converted without loss or not at all: nothing is rounded, cut or
guessed, so two values of the source never become one. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any
from uuid import UUID

from airflow_cdc_provider.core.columns.values import FLOATS, INTEGERS, single_precision
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

LIMITS = {Kind.INT16: 1 << 15, Kind.INT32: 1 << 31, Kind.INT64: 1 << 63}
EXACT = Context(prec=80, traps=[InvalidOperation, Inexact])
NUMBERS = INTEGERS | FLOATS | {Kind.DECIMAL}
TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

SOURCES: dict[Kind, frozenset[Kind]] = {
    **dict.fromkeys(NUMBERS, NUMBERS | {Kind.BOOLEAN, Kind.TEXT}),
    **dict.fromkeys(TIMES, TIMES | {Kind.TEXT}),
    Kind.BOOLEAN: INTEGERS | {Kind.TEXT},
    Kind.UUID: frozenset({Kind.TEXT}),
    Kind.JSON: frozenset({Kind.TEXT}),
}
"""Type -> the types that can be cast to it."""

Cast = Callable[[Any], Any]


class CannotCast(ValueError):
    """The type has no such value. The text contains no value."""

    def __init__(self, kind: LogicalType) -> None:
        super().__init__(f"a value that {kind} does not have")


def can_cast(source: Kind, target: Kind) -> bool:
    return source in SOURCES.get(target, ())


def cast_function(source: Kind, target: LogicalType) -> Cast:
    """For values that are not NULL, of a type that ``can_cast`` accepts. The function raises CannotCast."""
    convert = _convert(source, target)

    def cast(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, ArithmeticError, DecimalException, RecursionError):
            raise CannotCast(target) from None

    return cast


def _convert(source: Kind, target: LogicalType) -> Cast:
    match target.kind:
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return lambda value: _integer(_number(source, value), LIMITS[target.kind])
        case Kind.DECIMAL:
            return lambda value: _decimal(_number(source, value), target)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return lambda value: _float(source, value, target.kind)
        case Kind.BOOLEAN:
            return lambda value: BOOLEANS[str(value).lower()] if str(value).lower() in BOOLEANS else _fail()
        case Kind.UUID:
            return lambda value: str(UUID(value))
        case Kind.JSON:
            return _document
        case _:
            return lambda value: _time(value, target.kind)


def _fail() -> Any:
    raise ValueError


def _number(source: Kind, value: Any) -> Decimal:
    """The number that its shortest text names."""
    if source is Kind.TEXT and not NUMBER.fullmatch(value):
        raise ValueError
    if source in FLOATS and not math.isfinite(value):
        raise ValueError
    return Decimal(int(value)) if isinstance(value, bool) else Decimal(_float_text(source, value))


def _float_text(source: Kind, value: Any) -> Any:
    """Floats of 32 bits have fewer digits than Python shows."""
    if source is not Kind.FLOAT32:
        return repr(value) if source is Kind.FLOAT64 else value
    return next(text for digits in range(6, 10) if single_precision(float(text := f"{value:.{digits}g}")) == value)


def _integer(number: Decimal, limit: int) -> int:
    integer = int(number)
    return integer if integer == number and -limit <= integer < limit else _fail()


def _decimal(number: Decimal, target: LogicalType) -> Decimal:
    assert target.precision is not None and target.scale is not None
    if number.copy_abs() >= Decimal(10) ** (target.precision - target.scale):
        raise ValueError
    exact = number.quantize(Decimal(1).scaleb(-target.scale), context=EXACT)
    return exact if exact else exact.copy_abs()


def _float(source: Kind, value: Any, target: Kind) -> float:
    """Numbers that have no exact float are refused, but not the fractions that a float is the nearest one of: 0.1."""
    if source in FLOATS:
        result = single_precision(value) if target is Kind.FLOAT32 else float(value)
        return result if result == value or value != value else _fail()
    number = _number(source, value)
    result = single_precision(float(number)) if target is Kind.FLOAT32 else float(number)
    return result if Decimal(_float_text(target, result)) == number else _fail()


def _document(value: str) -> str:
    json.loads(value, parse_constant=lambda name: _fail())
    return value


def _time(value: Any, target: Kind) -> date:
    """A time without a zone is UTC."""
    if isinstance(value, str):
        value = _parsed_time(value)
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if target is Kind.DATE:
        return moment.date() if moment.time() == time() else _fail()
    return moment if target is Kind.TIMESTAMPTZ else moment.replace(tzinfo=None)


def _parsed_time(text: str) -> date:
    """A fraction of more than six digits would be cut."""
    if re.search(r"[.,]\d{7}", text) or not text.isascii():
        raise ValueError
    return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
