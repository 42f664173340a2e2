"""Conversion of source values to the types of the copy's columns, which the definition can override. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.unrepresentable import (
    Unrepresentable,
    none_if_unrepresentable,
    text_if_unrepresentable,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

T = TypeVar("T")


def convert_for_copy(
    schema: TableSchema, column: Column, described: CatalogColumn, read: Callable[[T], Any]
) -> Callable[[T], Any]:
    """A function from a cell to the value in ``column``. ``read``: from a cell to the source's value; it raises
    Unrepresentable for a value that no target can represent."""
    if column.text_of:
        return text_if_unrepresentable(read)
    if schema.has_text_of(column.name):
        return none_if_unrepresentable(read)
    if column.type != described.column.type and column.type.kind is Kind.TEXT:
        return _as_text(read, described.fraction)
    if column.name in schema.key and column.type.kind in FLOATS:
        return lambda cell: read(cell) + 0.0  # 0.0 and -0.0 are one key at the source
    return read


def _as_text(read: Callable[[T], Any], digits: int) -> Callable[[T], str]:
    def read_text(cell: T) -> str:
        try:
            return _text(read(cell), digits)
        except Unrepresentable as error:
            return error.text

    return read_text


def _text(value: Any, digits: int) -> str:
    match value:
        case datetime():
            seconds = value.replace(tzinfo=None, microsecond=0).isoformat(sep=" ")
            return seconds + (f".{value.microsecond:06d}"[: digits + 1] if digits else "")
        case date():
            return value.isoformat()
        case bool():
            return str(int(value))
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)
