"""SQL that reads the values of a table in the same form as the stream has them. Text only, no connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.text_order import ordered, ordered_literal
from airflow_cdc_provider.connectors.sources.postgres.types import FLOATS
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.spec.filters import InvalidDate, OutOfRange, Value, literal
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

CTID = "_cdc_ctid"
"""A column of the query that only the conditions of the splits use."""

PLAIN_TEXT = ("text", "character varying", "name", "uuid", "json", "jsonb", "numeric")


def select_list(schema: TableSchema, limited: bool = False) -> str:
    """``limited``: the role may select none of the system's columns."""
    columns = [f"{value_sql(column, schema)} AS {quoted(column.name)}" for column in schema.columns]
    return ", ".join([*columns, *([] if limited else [f"ctid AS {quoted(CTID)}"])])


def value_sql(column: Column, schema: TableSchema) -> str:
    """The column in a form whose text is exact. An unrepresentable value is NULL if a second column has its text;
    otherwise it is selected as it is, and its reader rejects it."""
    if column.text_of:
        source = quoted(column.text_of)
        return f"CASE WHEN NOT ({_is_representable(schema.column(column.text_of))}) THEN format('%s', {source}) END"
    if column.name in schema.key and column.type.kind in FLOATS:
        return f"{_plain(column)} + 0::{_BASE[column.type.kind]}"  # 0 and -0 are the same key
    if schema.has_text_of(column.name):
        return f"CASE WHEN {_is_representable(column)} THEN {_plain(column)} END"
    return _plain(column)


def _plain(column: Column) -> str:
    name = quoted(column.name)
    match column.type.kind:
        case Kind.BOOLEAN | Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.FLOAT32 | Kind.FLOAT64:
            return f"{name}::{_BASE[column.type.kind]}"
        case Kind.BYTES:
            return f"encode({name}::bytea, 'hex')"
        case Kind.DECIMAL:
            return f"{name}::numeric({column.type.precision},{column.type.scale})"
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"{name}::{_BASE[column.type.kind]}"
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return _text(column)


def _is_representable(column: Column) -> str:
    """A condition: the column's kind has the value. NULL if the column is NULL."""
    if column.type.kind is Kind.DECIMAL:
        return f"{quoted(column.name)}::numeric <> 'NaN'"
    first, last = _calendar(column.type.kind)
    return f"{quoted(column.name)}::{_BASE[column.type.kind]} BETWEEN {first} AND {last}"


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


def condition_sql(condition: Condition, schema: TableSchema, encoding: str) -> str:
    """Equivalent to ``core.spec.filters.matches``, which filters the stream. ``encoding``: of the database."""
    column = schema.column(condition.column)
    comparable = _comparable(column, encoding)
    if condition.op in (Comparison.IS_NULL, Comparison.IS_NOT_NULL):
        return f"({comparable}) {condition.op.value.upper()}"
    given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    literals = [_literal(column, item, encoding) for item in given if item is not None]
    if condition.op in (Comparison.IN, Comparison.NOT_IN):
        return f"({comparable}) {condition.op.value.upper()} ({', '.join(literals)})"
    operator = "<>" if condition.op is Comparison.NOT_EQUAL else condition.op.value
    return f"({comparable}) {operator} {literals[0]}"


def _calendar(kind: Kind) -> tuple[str, str]:
    """Literals of the first and the last value of a kind of time."""
    if kind is Kind.DATE:
        return "date '0001-01-01'", "date '9999-12-31'"
    zone = "+00" if kind is Kind.TIMESTAMPTZ else ""
    return f"{_BASE[kind]} '0001-01-01 00:00:00{zone}'", f"{_BASE[kind]} '9999-12-31 23:59:59.999999{zone}'"


def _text(column: Column) -> str:
    """The output of the type's output function, as in the stream. A cast to text differs for some types (``character``
    loses its padding, ``inet`` gains a mask), and IS NULL differs for composite types."""
    name = quoted(column.name)
    if re.sub(r"\([\d,-]+\)$", "", column.native) in PLAIN_TEXT:
        return f"{name}::text"
    return f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"


def _comparable(column: Column, encoding: str) -> str:
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
            return f"{name}::{_BASE[column.type.kind]}"
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return ordered(f"(CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END)", encoding)


def _literal(column: Column, given: Scalar, encoding: str) -> str:
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
            return ordered_literal(value, encoding)
        case OutOfRange() | InvalidDate():
            raise AssertionError("the YAML cannot contain such a time")
