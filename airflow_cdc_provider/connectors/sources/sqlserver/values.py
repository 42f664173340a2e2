"""Values of cells, as the expressions of ``types`` return them, in the types of a copy. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.sources.jdbc_poll.values import column_value
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn, logical_type
from airflow_cdc_provider.connectors.unrepresentable import (
    OTHER_YEAR,
    Unrepresentable,
    none_if_unrepresentable,
    text_if_unrepresentable,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

SECONDS = len("2026-01-02 03:04:05")
MICROSECONDS = len("2026-01-02 03:04:05.123456")
TIMES = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
BELOW_MICROSECOND = "a time with digits below a microsecond"
CUT = "nanoseconds_cut"
"""The warning of a record with a time that lost such digits."""

Read = Callable[[Any], Any]


def cell_reader(schema: TableSchema, column: Column, source: SqlColumn) -> Read:
    """A function from a cell that is not NULL to the value in ``column`` of a copy. ``source``: the column whose cells
    are read. The function raises Unrepresentable for a value that no target can represent."""
    read = source_reader(source, column.text_of or column.name in schema.key)
    if column.text_of:
        return text_if_unrepresentable(read)
    if schema.has_text_of(column.name):
        return none_if_unrepresentable(read)
    if column.type.kind is Kind.TEXT and column.type != logical_type(source):
        return _text
    return read


def source_reader(source: SqlColumn, exact: object = False) -> Read:
    """A function from a cell to the source's value. ``exact``: digits below a microsecond are not cut, they are
    unrepresentable."""
    kind = logical_type(source)
    match kind.kind:
        case Kind.TIMESTAMP:
            return lambda cell: _timestamp(cell, bool(exact))
        case Kind.TIMESTAMPTZ:
            return lambda cell: _timestamptz(cell, bool(exact))
        case Kind.DATE:
            return date.fromisoformat
        case Kind.UUID:
            return lambda cell: str(cell).lower()
        case Kind.FLOAT32 | Kind.FLOAT64:
            return lambda cell: float(cell) + 0.0 if exact else float(cell)  # 0.0 and -0.0 are one key
        case _:
            return lambda cell: column_value(kind, cell)


def is_cut(source: SqlColumn, cell: Any) -> bool:
    """Whether a value outside the key loses digits below a microsecond."""
    return (
        cell is not None
        and source.scale == 7
        and logical_type(source).kind in TIMES
        and cell[MICROSECONDS : MICROSECONDS + 1] not in ("0", "", " ")
    )


def _timestamp(text: str, exact: bool) -> datetime:
    whole, digit = text[:MICROSECONDS], text[MICROSECONDS : MICROSECONDS + 1]
    if exact and digit not in ("", "0"):
        raise Unrepresentable(BELOW_MICROSECOND, text)
    return datetime.fromisoformat(whole)


def _timestamptz(text: str, exact: bool) -> datetime:
    """``2026-01-02 03:04:05.1234567 +02:00``"""
    local, _, offset = text.rpartition(" ")
    try:
        return datetime.fromisoformat(f"{_timestamp(local, exact).isoformat()}{offset}").astimezone(UTC)
    except OverflowError as error:
        raise Unrepresentable(OTHER_YEAR, text) from error


def _text(cell: Any) -> str:
    match cell:
        case bool():
            return str(int(cell))
        case Decimal():
            return f"{cell:f}"
        case _:
            return str(cell)
