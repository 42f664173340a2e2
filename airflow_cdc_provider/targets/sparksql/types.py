"""Logical types as Spark SQL types, and canonical texts as Spark SQL values."""

from __future__ import annotations

import json
from typing import Any

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.targets.sparksql.names import text_literal

_TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT16: "SMALLINT",
    Kind.INT32: "INT",
    Kind.INT64: "BIGINT",
    Kind.FLOAT32: "FLOAT",
    Kind.FLOAT64: "DOUBLE",
    Kind.TEXT: "STRING",
    Kind.JSON: "STRING",
    Kind.UUID: "STRING",
    Kind.BYTES: "BINARY",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
}

TEXTUAL = frozenset({Kind.TEXT, Kind.JSON, Kind.UUID})
FLOATING = frozenset({Kind.FLOAT32, Kind.FLOAT64})


def column_type(logical: LogicalType) -> str:
    if logical.kind is Kind.DECIMAL:
        return f"DECIMAL({logical.precision},{logical.scale})"
    return _TYPES[logical.kind]


def from_text(expression: str, logical: LogicalType) -> str:
    """SQL that converts the text of a canonical value. Invalid text raises an error and never becomes NULL."""
    if logical.kind in TEXTUAL:
        return expression
    if logical.kind is Kind.BYTES:
        return f"to_binary({expression}, 'base64')"
    return f"CAST({expression} AS {column_type(logical)})"


def try_from_text(expression: str, logical: LogicalType) -> str:
    """As ``from_text``, but invalid text becomes NULL."""
    if logical.kind in TEXTUAL:
        return expression
    if logical.kind is Kind.BYTES:
        return f"try_to_binary({expression}, 'base64')"
    return f"TRY_CAST({expression} AS {column_type(logical)})"


def literal(value: Any, logical: LogicalType) -> str:
    """A typed literal of a canonical value (as from ``json.loads``)."""
    if value is None:
        return f"CAST(NULL AS {column_type(logical)})"
    text = json.dumps(value) if isinstance(value, bool | int | float) else str(value)
    return from_text(text_literal(text), logical)


def initial_value(column: Column) -> str:
    """The value of the column in rows that are older than it, as SQL."""
    return literal(None if column.initial is None else json.loads(column.initial), column.type)
