"""Types of a database, as SQLAlchemy names them, as logical types. Pure.

What has no exact counterpart is text, as the database itself writes it: documents, arrays, intervals, times of day.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from airflow_cdc_provider.core.table.schema import Kind, LogicalType

MOST_DIGITS = 38
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
            if precision and 0 <= scale <= precision <= MOST_DIGITS:
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


def comes_as_text(kind: Type) -> bool:
    """The driver's own value is the text; all others of kind text or document are asked for as text."""
    return isinstance(kind, sa.String) and not isinstance(kind, mysql.SET)


def is_zoned(kind: Type, system: str) -> bool:
    """MySQL keeps its type TIMESTAMP in UTC, and shows it in the session's zone, which is UTC."""
    if system in ("mysql", "mariadb"):
        return isinstance(kind, sa.TIMESTAMP)
    return bool(getattr(kind, "timezone", False))


def is_told_zoned(kind: Type, system: str) -> bool:
    """Values go to the database with their zone; without it they are in UTC."""
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
