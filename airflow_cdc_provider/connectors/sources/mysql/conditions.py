"""The row filter of a table as SQL. It selects the rows that ``core.spec.filters`` selects in the stream. Pure."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, quoted
from airflow_cdc_provider.connectors.sources.mysql.cells import shortest_float
from airflow_cdc_provider.connectors.sources.mysql.types import INTEGERS, CatalogColumn
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.filters import Value, literal
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

OPERATORS = {Comparison.NOT_EQUAL: "<>", Comparison.IN: "IN", Comparison.NOT_IN: "NOT IN"}
EQUALITIES = frozenset({Comparison.EQUAL, Comparison.IN})
LISTS = frozenset({Comparison.IN, Comparison.NOT_IN})
TEXTS = frozenset({Kind.TEXT, Kind.JSON, Kind.UUID})
NUMBERS = frozenset({*INTEGERS, "decimal", "bit", "year"})
"""Types whose text at the server may have zeros in front."""

LARGEST = {Kind.FLOAT32: 3.4028234663852886e38, Kind.FLOAT64: sys.float_info.max}
DIGITS, SCALE = 65, 30
"""The most that a decimal number in a statement may have. Further ones are numbers with an exponent, hence inexact."""

SQL = tuple[str, list[object]]


def row_filter(
    conditions: Sequence[Condition], schema: TableSchema, table: CatalogTable
) -> tuple[list[str], list[object]]:
    """The conditions as SQL with marks, and the values of the marks."""
    columns = {column.name: column for column in table.columns}
    found = [
        _condition(condition, schema.column(condition.column).type.kind, columns[condition.column])
        for condition in conditions
    ]
    return [text for text, _ in found], [value for _, values in found for value in values]


def _condition(condition: Condition, kind: Kind, column: CatalogColumn) -> SQL:
    name = _comparable(kind, column)
    operands = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if condition.op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        is_null = f"{name} <=> NULL"  # `IS NULL` is true for a zero date in a NOT NULL column
        return is_null if condition.op is Comparison.IS_NULL else f"NOT ({is_null})", []
    values = [literal(kind, operand) for operand in operands if operand is not None]
    if kind in FLOATS:
        return _of_floats(condition.op, name, kind, [float(value) for value in values if isinstance(value, float)])
    return _compared(name, condition.op, values)


def _comparable(kind: Kind, column: CatalogColumn) -> str:
    """Text is compared byte by byte, as in every row filter, and not by its collation."""
    name = quoted(column.name).replace("%", "%%")
    if column.data_type in NUMBERS and (kind in TEXTS or column.data_type == "year"):
        name = f"({name} + 0)"  # the server takes 24 for the year 2024
    if kind is Kind.FLOAT32:
        return f"({name} + 0.0e0)"
    return f"CONVERT(CONVERT({name} USING utf8mb4) USING binary)" if kind in TEXTS else name


def _compared(name: str, op: Comparison, values: Sequence[Value]) -> SQL:
    operands = [_operand(value) for value in values]
    marks = ", ".join(text for text, _ in operands)
    operator = OPERATORS.get(op, op.value)
    text = f"{name} {operator} {f'({marks})' if op in LISTS else marks}"
    return text, [value for _, some in operands for value in some]


def _operand(value: Value) -> SQL:
    if isinstance(value, Decimal):
        return _number(value), []
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "%s", [value.astimezone(UTC).replace(tzinfo=None)]
    return "%s", [value.encode() if isinstance(value, str) else value]


def _number(value: Decimal) -> str:
    fraction = max(0, -int(value.as_tuple().exponent))
    exact = fraction <= SCALE and max(1, value.adjusted() + 1) + fraction <= DIGITS
    return f"{value:f}" if exact else f"{value:e}"


def _of_floats(op: Comparison, name: str, kind: Kind, values: Sequence[float]) -> SQL:
    """The server has the exact value of a float, the stream the shortest number that stands for it. Both have the same
    order, so it suffices to know the float next to each operand, and its shortest number."""
    nearest = [_nearest(value, kind) for value in values]
    if op in EQUALITIES or op in (Comparison.NOT_EQUAL, Comparison.NOT_IN):
        equal = [exact for value, (exact, shown) in zip(values, nearest, strict=True) if shown == value]
        if op in EQUALITIES:
            return _compared(name, Comparison.IN, equal) if equal else ("FALSE", [])
        return _compared(name, Comparison.NOT_IN, equal) if equal else (f"{name} IS NOT NULL", [])
    (value,), ((exact, shown),) = values, nearest
    if op in (Comparison.LESS, Comparison.LESS_OR_EQUAL):
        selected = shown < value or (op is Comparison.LESS_OR_EQUAL and shown == value)
        return _compared(name, Comparison.LESS_OR_EQUAL if selected else Comparison.LESS, [exact])
    selected = shown > value or (op is Comparison.GREATER_OR_EQUAL and shown == value)
    return _compared(name, Comparison.GREATER_OR_EQUAL if selected else Comparison.GREATER, [exact])


def _nearest(value: float, kind: Kind) -> tuple[float, float]:
    """The float of the column's kind that is next to ``value``, exactly and as the stream shows it."""
    within = max(-LARGEST[kind], min(value, LARGEST[kind]))
    if kind is Kind.FLOAT64:
        return within, within
    cell = struct.pack("<f", within)
    (exact,) = struct.unpack("<f", cell)
    return exact, shortest_float(cell)
