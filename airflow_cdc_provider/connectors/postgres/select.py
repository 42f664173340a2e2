"""SQL that reads a table so that every value arrives as the stream tells it. Text only, no connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from airflow_cdc_provider.connectors.postgres.publication import quoted
from airflow_cdc_provider.core.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.filters import Value, literal
from airflow_cdc_provider.core.tables import Column, Kind, TableSchema

CTID = "_cdc_ctid"
"""A column of the query that only the shares' conditions use."""

PLAIN_TEXT = ("text", "character varying", "name", "uuid", "json", "jsonb", "numeric")


def select_list(schema: TableSchema) -> str:
    columns = [f"{value_sql(column)} AS {quoted(column.name)}" for column in schema.columns]
    return ", ".join([*columns, f"ctid AS {quoted(CTID)}"])


def value_sql(column: Column) -> str:
    """The column in a form whose text says all of it."""
    name = quoted(column.name)
    match column.type.kind:
        case Kind.BOOLEAN | Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.FLOAT32 | Kind.FLOAT64:
            return f"{name}::{_BASE[column.type.kind]}"
        case Kind.BYTES:
            return f"encode({name}::bytea, 'hex')"
        case Kind.DECIMAL:
            return f"NULLIF({name}::numeric, 'NaN')::numeric({column.type.precision},{column.type.scale})"
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _within_calendar(column)
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return _text(column)


_BASE: Mapping[Kind, str] = {
    Kind.BOOLEAN: "bool",
    Kind.INT16: "int2",
    Kind.INT32: "int4",
    Kind.INT64: "int8",
    Kind.FLOAT32: "float4",
    Kind.FLOAT64: "float8",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
}


def condition_sql(condition: Condition, schema: TableSchema) -> str:
    """The same decision as ``core.filters.matches`` takes on the stream."""
    column = schema.column(condition.column)
    if condition.op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return f"({_comparable(column)}) {condition.op.value.upper()}"
    given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    literals = [_literal(column, item) for item in given if item is not None]
    if condition.op in (Comparison.IN, Comparison.NOT_IN):
        return f"({_comparable(column)}) {condition.op.value.upper()} ({', '.join(literals)})"
    operator = "<>" if condition.op is Comparison.NOT_EQUAL else condition.op.value
    return f"({_comparable(column)}) {operator} {literals[0]}"


def _within_calendar(column: Column) -> str:
    """Years 1 to 9999; what lies beyond, infinities too, becomes the end of the calendar."""
    kind = _BASE[column.type.kind]
    zone = "+00" if column.type.kind is Kind.TIMESTAMPTZ else ""
    name = f"{quoted(column.name)}::{kind}"
    first, last = ("0001-01-01", "9999-12-31")
    if column.type.kind is not Kind.DATE:
        first, last = f"{first} 00:00:00{zone}", f"{last} 23:59:59.999999{zone}"
    return (
        f"CASE WHEN {name} < {kind} '{first}' THEN {kind} '{first}' "
        f"WHEN {name} > {kind} '{last}' THEN {kind} '{last}' ELSE {name} END"
    )


def _text(column: Column) -> str:
    """What the type's output function prints, as on the stream. A cast to text is something else for some types
    (``character`` loses its padding, ``inet`` gains a mask), and IS NULL is something else for composite ones."""
    name = quoted(column.name)
    if re.sub(r"\([\d,-]+\)$", "", column.native) in PLAIN_TEXT:
        return f"{name}::text"
    return f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"


def _comparable(column: Column) -> str:
    name = quoted(column.name)
    match column.type.kind:
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return f"{name}::int8::numeric"
        case Kind.FLOAT32:
            return f"{name}::float4::text::float8"
        case Kind.FLOAT64 | Kind.BOOLEAN | Kind.BYTES:
            return name
        case Kind.DECIMAL:
            return f"NULLIF({name}::numeric, 'NaN')"
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _within_calendar(column)
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return f"(CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END) COLLATE \"C\""


def _literal(column: Column, given: Scalar) -> str:
    value: Value = literal(column.type.kind, given)
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return f"'{value}'::numeric"
        case float():
            return f"'{value!r}'::float8"
        case datetime():
            return f"'{value.isoformat(sep=' ')}'::{'timestamptz' if value.tzinfo else 'timestamp'}"
        case date():
            return f"'{value.isoformat()}'::date"
        case str():
            return _quoted_text(value)


def _quoted_text(value: str) -> str:
    """Means the same whether or not the server takes backslashes in plain literals for escapes."""
    mark = "E" if "\\" in value else ""
    return mark + "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
