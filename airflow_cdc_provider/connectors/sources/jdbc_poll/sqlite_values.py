"""Values of SQLite. The type belongs to a value and not to its column, so that a column holds what a program gives it.

A value of another type than its column is refused: each conversion would make another value of some. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.unrepresentable import OTHER_TYPE, Unrepresentable
from airflow_cdc_provider.core.table.schema import Kind, LogicalType

STORED: Mapping[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (int,),
    Kind.INT64: (int,),
    Kind.FLOAT64: (float, int),
    Kind.DECIMAL: (float, int),
    Kind.DATE: (str,),
    Kind.TIMESTAMP: (str,),
    Kind.TEXT: (str,),
    Kind.JSON: (str,),
    Kind.BYTES: (bytes,),
}
"""The types that the driver returns for values of the kind."""


def stored_value(kind: LogicalType, value: Any) -> Any:
    """As ``column_value``. ``value``: as it is stored."""
    if value is not None and not (type(value) in STORED[kind.kind] and _is_of_kind(kind, value)):
        raise Unrepresentable(OTHER_TYPE, str(value))
    return column_value(kind, value)


def text_or_bytes(stored: bytes) -> str | bytes:
    """The driver's text of a value. A text that is not UTF-8 is its bytes, which no text column accepts."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _is_of_kind(kind: LogicalType, value: Any) -> bool:
    if kind.kind is Kind.BOOLEAN:
        return value in (0, 1)
    if kind.kind is Kind.DECIMAL:
        assert kind.precision is not None and kind.scale is not None
        return not abs(value) >= 10 ** (kind.precision - kind.scale)
    return True
