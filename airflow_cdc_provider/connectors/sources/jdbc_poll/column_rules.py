"""What is known of a class of types. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.core.table.schema import MAX_DIGITS, Kind, LogicalType

Type = sa.types.TypeEngine[Any]


class Select(StrEnum):
    """The expression by which a column is selected: the value that the driver returns, its bytes, the text that the
    server casts it to, a number with all its digits, or a timestamp that the server converts to UTC. REFUSED: the
    column cannot be copied."""

    VALUE = "value"
    BYTES = "bytes"
    TEXT = "text"
    NUMBER = "number"
    UTC = "utc"
    REFUSED = "refused"


class Order(StrEnum):
    """How the pages of a table follow a key column: by its values, as the server compares them with a parameter; by
    their texts, if it sorts and compares in two ways; or not at all."""

    VALUE = "value"
    TEXT = "text"
    NONE = "none"


@dataclass(frozen=True)
class SourceType:
    """``binds_zone``: query parameters of the type have a time zone. Those without are in UTC."""

    type: LogicalType
    select: Select = Select.VALUE
    binds_zone: bool = False
    order: Order = Order.VALUE


Rule = SourceType | Callable[[Any], SourceType]


def value(kind: Kind, select: Select = Select.VALUE, order: Order = Order.VALUE) -> SourceType:
    return SourceType(LogicalType(kind), select, order=order)


def decimal(precision: int, scale: int) -> SourceType:
    return SourceType(LogicalType(Kind.DECIMAL, precision, scale))


def number(kind: Any) -> SourceType:
    """A number of ``precision`` digits, ``scale`` of them behind the point. Without, or with more digits than a decimal
    has, it is text."""
    precision, scale = kind.precision, kind.scale or 0
    if precision and 0 <= scale <= precision <= MAX_DIGITS:
        return decimal(precision, scale)
    return value(Kind.TEXT, Select.NUMBER)


def timestamp(kind: Any) -> SourceType:
    zoned = bool(kind.timezone)
    return SourceType(LogicalType(Kind.TIMESTAMPTZ if zoned else Kind.TIMESTAMP), binds_zone=zoned)


BOOLEAN, UUID, BYTES, DATE = value(Kind.BOOLEAN), value(Kind.UUID), value(Kind.BYTES), value(Kind.DATE)
INT16, INT32, INT64 = value(Kind.INT16), value(Kind.INT32), value(Kind.INT64)
FLOAT32, FLOAT64 = value(Kind.FLOAT32), value(Kind.FLOAT64)
TIMESTAMP, TIMESTAMPTZ = value(Kind.TIMESTAMP), value(Kind.TIMESTAMPTZ)
TEXT = value(Kind.TEXT)
"""Texts, which the driver returns."""
CAST_TEXT = value(Kind.TEXT, Select.TEXT)
JSON = value(Kind.JSON, Select.TEXT)
