"""Values of a driver as columns of a copy, and canonical values back in a query. Pure."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NoReturn
from uuid import UUID

from airflow_cdc_provider.connectors.unrepresentable import NO_DATE, NOT_A_NUMBER, Unrepresentable
from airflow_cdc_provider.core.tables import Kind, LogicalType

EXACT = Context(prec=76, rounding=ROUND_HALF_UP)


def plain(kind: LogicalType, value: Any) -> Any:
    """The value as Arrow takes it for a column of this kind, and as ``polling.canonical`` writes it. Raises
    Unrepresentable for a value that the kind has not."""
    if value is None:
        return None
    match kind.kind:
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return int(value)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return float(value)
        case Kind.DECIMAL:
            return _decimal(kind, value)
        case Kind.DATE:
            return value if isinstance(value, date) else _no_date(value)
        case Kind.TIMESTAMP:
            return value.replace(tzinfo=None) if isinstance(value, datetime) else _no_date(value)
        case Kind.TIMESTAMPTZ:
            return in_utc(value) if isinstance(value, datetime) else _no_date(value)
        case Kind.BYTES:
            return bytes(value)
        case _:
            return _text(value)


def asked(kind: LogicalType, value: Any, zoned: bool) -> Any:
    """A canonical value, as ``json.loads`` gives it, for a query. ``zoned``: times take their zone along."""
    match kind.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(value)
        case Kind.TIMESTAMPTZ:
            moment = datetime.fromisoformat(value)
            return moment if zoned else moment.replace(tzinfo=None)
        case Kind.BYTES:
            return b64decode(value)
        case Kind.UUID:
            return UUID(value)
        case _:
            return value


def in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _decimal(kind: LogicalType, value: Any) -> Decimal:
    assert kind.scale is not None
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise Unrepresentable(NOT_A_NUMBER, str(value))
    number = number.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    return number if number else abs(number)


def _text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) and value.is_finite() else str(value)


def _no_date(value: Any) -> NoReturn:
    """A driver gives what it takes for no date as the server's own text."""
    raise Unrepresentable(NO_DATE, str(value))
