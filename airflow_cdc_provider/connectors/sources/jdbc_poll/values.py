"""Convert a driver's values to those of columns, and canonical values to query parameters. Pure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.unrepresentable import (
    INFINITE,
    MORE_DIGITS,
    NO_DATE,
    NOT_A_NUMBER,
    OTHER_YEAR,
    Unrepresentable,
)
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

YEAR_DIGITS = 4
ReadValue = Callable[[LogicalType, Any], Any]
"""``column_value``, or that of a system whose values differ from their columns."""
EXACT = Context(prec=76, rounding=ROUND_HALF_UP)


def column_value(kind: LogicalType, value: Any) -> Any:
    """The Python value that Arrow and ``polling.canonical`` accept for a column of this kind. Raises Unrepresentable
    for a value that the kind does not have."""
    if value is None:
        return None
    match kind.kind:
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return value if type(value) is int else _integer(value)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return float(value)
        case Kind.DECIMAL:
            return _decimal(kind, value)
        case Kind.DATE:
            return _date(value)
        case Kind.TIMESTAMP:
            return in_utc(_timestamp(value)).replace(tzinfo=None)
        case Kind.TIMESTAMPTZ:
            return in_utc(_timestamp(value))
        case Kind.BYTES:
            return bytes(value)
        case _:
            return _text(value)


def parameter(kind: LogicalType, value: Any, zoned: bool) -> Any:
    """A query parameter from a canonical value, as ``json.loads`` returns it. ``zoned``: timestamps keep their time
    zone."""
    match kind.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(value)
        case Kind.TIMESTAMPTZ:
            timestamp = datetime.fromisoformat(value)
            return timestamp if zoned else timestamp.replace(tzinfo=None)
        case Kind.BYTES:
            return b64decode(value)
        case Kind.UUID:
            return UUID(value)
        case _:
            return value


def in_utc(timestamp: datetime) -> datetime:
    return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)


def _integer(value: Any) -> int:
    """Not every system keeps what a column declares."""
    if (number := int(value)) != value:
        raise Unrepresentable(MORE_DIGITS, str(value))
    return number


def _decimal(kind: LogicalType, value: Any) -> Decimal:
    assert kind.scale is not None
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        raise Unrepresentable(NOT_A_NUMBER, str(value))
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    if rounded != number:
        raise Unrepresentable(MORE_DIGITS, str(value))
    return rounded if rounded else abs(rounded)


def _text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) and value.is_finite() else str(value)


def _date(value: Any) -> date:
    if isinstance(value, date):
        return value
    text = _require_representable(value)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Unrepresentable(NO_DATE, text) from error


def _timestamp(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(_require_representable(value))


def _require_representable(text: Any) -> str:
    """``text`` is the server's text of a date or timestamp. SQLite has numbers among its times."""
    if not isinstance(text, str):
        raise Unrepresentable(NO_DATE, str(text))
    if text in ("infinity", "-infinity"):
        raise Unrepresentable(INFINITE, text)
    if text.endswith(" BC") or text.find("-") > YEAR_DIGITS:
        raise Unrepresentable(OTHER_YEAR, text)
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise Unrepresentable(NO_DATE, text) from error
    return text
