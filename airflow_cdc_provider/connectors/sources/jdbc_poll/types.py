"""Map SQLAlchemy types to logical types. Pure.

A type without exact counterpart is text, as the database prints it: arrays, intervals, times of day.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from airflow_cdc_provider.core.table.schema import Kind, LogicalType

MAX_PRECISION = 38
Type = sa.types.TypeEngine[Any]


def logical_type(kind: Type, system: str) -> LogicalType:
    match kind:
        case sa.Boolean():
            return LogicalType(Kind.BOOLEAN)
        case sa.Integer():
            return LogicalType(*_integer(kind))
        case sa.REAL() if system == "postgresql":
            return LogicalType(Kind.FLOAT32)
        case sa.Float():
            return LogicalType(Kind.FLOAT64)
        case sa.Numeric():
            precision, scale = kind.precision, kind.scale or 0
            if precision and 0 <= scale <= precision <= MAX_PRECISION:
                return LogicalType(Kind.DECIMAL, precision, scale)
            return LogicalType(Kind.TEXT)
        case sa.Date():
            return LogicalType(Kind.DATE)
        case sa.DateTime():
            return LogicalType(Kind.TIMESTAMPTZ if is_zoned(kind, system) else Kind.TIMESTAMP)
        case sa.Uuid():
            return LogicalType(Kind.UUID)
        case sa.LargeBinary() | mysql.BIT() | sa.BINARY() | sa.VARBINARY():
            return LogicalType(Kind.BYTES)
        case sa.JSON():
            return LogicalType(Kind.JSON)
        case _:
            return LogicalType(Kind.TEXT)


def is_text_in_driver(kind: Type) -> bool:
    """Whether the driver returns the text. All other columns of kind TEXT or JSON are cast to text."""
    return isinstance(kind, sa.String) and not isinstance(kind, mysql.SET)


def is_zoned(kind: Type, system: str) -> bool:
    """MySQL stores TIMESTAMP in UTC, and returns it in the session's time zone, which is UTC."""
    if system in ("mysql", "mariadb"):
        return isinstance(kind, sa.TIMESTAMP)
    return bool(getattr(kind, "timezone", False))


def binds_zone(kind: Type, system: str) -> bool:
    """Whether query parameters of the type have a time zone. Those without are in UTC."""
    return system not in ("mysql", "mariadb", "sqlite") and is_zoned(kind, system)


def _integer(kind: sa.Integer) -> tuple[Any, ...]:
    unsigned = bool(getattr(kind, "unsigned", False))
    match kind:
        case sa.BigInteger():
            return (Kind.DECIMAL, 20, 0) if unsigned else (Kind.INT64,)
        case mysql.TINYINT():
            return (Kind.INT16,)
        case sa.SmallInteger():
            return (Kind.INT32,) if unsigned else (Kind.INT16,)
        case mysql.MEDIUMINT():
            return (Kind.INT32,)
        case _:
            return (Kind.INT64,) if unsigned else (Kind.INT32,)
