"""SQL by which PostgreSQL computes row counts and checksums per interval of the key, and a hash per row. Text only.

The text forms equal those of ``targets/sparksql/compare.py``. They use neither the stream's nor the copy's conversion,
so an error in those becomes visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.select import CTID, condition_sql, value_sql
from airflow_cdc_provider.connectors.sources.postgres.text_order import ordered, ordered_literal, quoted_text
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.proof.key_intervals import Key, KeyInterval, number_sql, within_sql
from airflow_cdc_provider.core.table.schema import LIMITED, Column, Kind, TableSchema
from airflow_cdc_provider.core.table.source_names import parts_of

NUMBER = quoted("_cdc_number")
HASH_DIGITS = 16
"""Of the hash of one value."""

FIRST, LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"


@dataclass(frozen=True)
class ComparedTable:
    """``schema``: of its copy. ``encoding``: of the database."""

    task: TableTask
    schema: TableSchema
    encoding: str


def sums_query(table: ComparedTable, intervals: Sequence[KeyInterval]) -> str:
    """One row per interval that has rows: its ``number``, ``n`` rows, and per column ``c0``, ``c1`` … the sum of its
    hashes."""
    sums = [f"sum({_hash('k', f't{number}')})::text AS c{number}" for number in range(len(table.schema.columns))]
    return f"SELECT number, count(*) AS n, {', '.join(sums)} FROM ({_texts(table, intervals)}) AS texts GROUP BY number"


def hashes_query(table: ComparedTable, intervals: Sequence[KeyInterval]) -> str:
    """Per row ``k``, the text of its key, ``h``, a hash of each value, separated by commas, and the column for splits.
    Without a key ``k`` is the text of all columns, and ``h`` one hash."""
    texts = [_marked(f"t{number}") for number in range(len(table.schema.columns))]
    each = " || ',' || ".join(f"substr({_md5(text)}, 1, {HASH_DIGITS})" for text in texts)
    hashes = each if table.schema.key else _md5(" || chr(1) || ".join(texts))
    return f"SELECT k, {hashes} AS h, {quoted(CTID)} FROM ({_texts(table, intervals)}) AS texts"


def rows_query(table: ComparedTable, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> str:
    """The rows with these texts of keys, in the form of a copy."""
    schema = table.schema
    columns = ", ".join(f"{value_sql(column, schema)} AS {quoted(column.name)}" for column in schema.columns)
    key = " || chr(1) || ".join(_marked(_comparable_text(schema.column(name), in_key=True)) for name in schema.key)
    listed = ", ".join(ordered_literal(text, table.encoding) for text in keys)
    rows, found = _rows(table, intervals), ordered(f"({key})", table.encoding)
    return f"SELECT {columns} FROM ({rows}) AS rows WHERE {found} IN ({listed})"


def cuts_query(table: ComparedTable, interval: KeyInterval, rows: int) -> str:
    """The texts of the key of every ``rows``-th row of an interval, in the order of the keys."""
    columns = [table.schema.column(name) for name in table.schema.key]
    texts = ", ".join(_comparable_text(column, in_key=True) for column in columns)
    order = ", ".join(_key_sql(column, table.encoding) for column in columns)
    fit = [f"{NUMBER} % {rows} = 0", *(_inside(column) for column in columns if column.type.kind in LIMITED)]
    within = _rows(table, [interval])
    numbered = f"SELECT *, row_number() OVER (ORDER BY {order}) AS {NUMBER} FROM ({within}) AS rows"
    return f"SELECT {texts} FROM ({numbered}) AS numbered WHERE {' AND '.join(fit)} ORDER BY {NUMBER}"


def _texts(table: ComparedTable, intervals: Sequence[KeyInterval]) -> str:
    schema = table.schema
    number = number_sql(intervals, partial(_compare, table, "<="))
    texts = ", ".join(f"{_column_text(column, schema)} AS t{number}" for number, column in enumerate(schema.columns))
    key = [schema.names.index(name) for name in schema.key] or range(len(schema.columns))
    joined = " || chr(1) || ".join(_marked(f"t{number}") for number in key)
    rows = _rows(table, intervals)
    return (
        f"SELECT *, {joined} AS k FROM (SELECT {texts}, {number} AS number, {quoted(CTID)} FROM ({rows}) AS rows)"
        " AS columns"
    )


def _rows(table: ComparedTable, intervals: Sequence[KeyInterval]) -> str:
    """Rows of inheritance children are left out; rows of partitions are included."""
    name = ".".join(map(quoted, parts_of(table.task.name_in_source)))
    regclass = "'" + name.replace("'", "''") + "'::regclass"
    own = f"p.oid = {regclass} AND (r.tableoid = p.oid OR p.relkind = 'p')"
    rows = f"SELECT r.*, r.ctid AS {quoted(CTID)} FROM {name} AS r, pg_class AS p WHERE {own}"
    within = within_sql(intervals, partial(_compare, table, ">"), partial(_compare, table, "<="))
    filters = [condition_sql(condition, table.schema, table.encoding) for condition in table.task.rule.where]
    conditions = [*filters, *([within] if within else [])]
    return f"SELECT * FROM ({rows}) AS rows WHERE {' AND '.join(conditions)}" if conditions else rows


def _compare(table: ComparedTable, operator: str, key: Key) -> str:
    """A comparison of the key of a row with a bound."""
    columns = [table.schema.column(name) for name in table.schema.key]
    keys = [_key_sql(column, table.encoding) for column in columns]
    literals = [_key_literal(column, text, table.encoding) for column, text in zip(columns, key, strict=True)]
    if len(columns) == 1:
        return f"{keys[0]} {operator} {literals[0]}"
    return f"({', '.join(keys)}) {operator} ({', '.join(literals)})"


def _key_sql(column: Column, encoding: str) -> str:
    """A key column as every system orders it."""
    name = quoted(column.name)
    match column.type.kind:
        case Kind.TEXT:
            plain = column.native.partition("(")[0] in ("text", "character varying", "name")
            return ordered(f"{name}::text" if plain else f"format('%s', {name})", encoding)
        case _:
            return name


def _key_literal(column: Column, text: str, encoding: str) -> str:
    if column.type.kind is Kind.TEXT:
        return ordered_literal(text, encoding)
    zone = "+00" if column.type.kind is Kind.TIMESTAMPTZ else ""
    return f"{quoted_text(text + zone)}::{_ORDERED[column.type.kind]}"


_ORDERED = {
    Kind.INT16: "int8",
    Kind.INT32: "int8",
    Kind.INT64: "int8",
    Kind.DECIMAL: "numeric",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.UUID: "uuid",
}


def _column_text(column: Column, schema: TableSchema) -> str:
    """An unrepresentable value is NULL in its column if a second column has its text."""
    if column.text_of:
        return f"CASE WHEN NOT ({_inside(schema.column(column.text_of))}) THEN {quoted(column.text_of)}::text END"
    if schema.has_text_of(column.name):
        return f"CASE WHEN {_inside(column)} THEN {_comparable_text(column)} END"
    return _comparable_text(column, column.name in schema.key)


def _inside(column: Column) -> str:
    name = quoted(column.name)
    if column.type.kind is Kind.DECIMAL:
        return f"{name}::text NOT IN ('NaN', 'Infinity', '-Infinity')"
    time = f"({name} AT TIME ZONE 'UTC')" if column.type.kind is Kind.TIMESTAMPTZ else f"{name}::timestamp"
    return f"{time} >= '{FIRST}' AND {time} <= '{LAST}'"


def _comparable_text(column: Column, in_key: bool = False) -> str:
    """A text that the target can also compute. In a key 0.0 and -0.0 are equal."""
    name = quoted(column.name)
    match column.type.kind:
        case Kind.BOOLEAN:
            return f"CASE {name} WHEN true THEN 't' WHEN false THEN 'f' END"
        case Kind.FLOAT32:
            return _bits(f"({name} + 0::float4)" if in_key else name, "float4send", 32, "int")
        case Kind.FLOAT64:
            return _bits(f"({name} + 0::float8)" if in_key else name, "float8send", 64, "bigint")
        case Kind.DECIMAL:
            return f"{name}::text"
        case Kind.BYTES:
            return f"encode({name}, 'hex')"
        case Kind.DATE:
            return _time(f"{name}::timestamp", "YYYY-MM-DD")
        case Kind.TIMESTAMP:
            return _time(name, "YYYY-MM-DD HH24:MI:SS.US")
        case Kind.TIMESTAMPTZ:
            return _time(f"({name} AT TIME ZONE 'UTC')", "YYYY-MM-DD HH24:MI:SS.US")
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return f"{name}::text"
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"


def _bits(name: str, send: str, bits: int, integer: str) -> str:
    """The bits of a float as an integer, because systems print floats differently. All NaN are equal."""
    number = f"('x' || encode({send}({name}), 'hex'))::bit({bits})::{integer}::text"
    return f"CASE WHEN {name} = 'NaN' THEN 'NaN' ELSE {number} END"


def _time(time: str, form: str) -> str:
    """An infinite time, or one outside the years 1 to 9999, has a text that no target has."""
    beyond = f"{time} < '{FIRST}' OR {time} > '{LAST}'"
    return f"CASE WHEN {beyond} THEN ({time})::text ELSE to_char({time}, '{form}') END"


def _marked(text: str) -> str:
    """NULL becomes a text that no value has."""
    return f"coalesce({text}, chr(2) || 'null')"


def _md5(text: str) -> str:
    return f"md5(convert_to({text}, 'UTF8'))"


def _hash(key: str, text: str) -> str:
    """Eighteen decimal digits of key and value. Digits are translated, so that no system has to parse hexadecimals."""
    md5 = _md5(f"{key} || chr(1) || {_marked(text)}")
    return f"translate(substr({md5}, 1, 18), 'abcdef', '012345')::bigint"
