"""Checksums of a target's rows in Spark SQL, equal to those of ``connectors/sources/postgres/compare.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial

from airflow_cdc_provider.core.proof.key_intervals import (
    WHOLE,
    Key,
    KeyInterval,
    lexicographic,
    number_sql,
    within_sql,
)
from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import literal

HALF = 10**9
"""Hashes are summed in two halves: the sum of whole ones would overflow, and decimals are slow."""

HASH_DIGITS = 16
"""Of the hash of one value."""


class Hash(StrEnum):
    """``MD5``: a hash that databases can compute, too. ``XX``: Spark's own, which is faster."""

    MD5 = "md5"
    XX = "xx"


def sums_sql(view: str, schema: TableSchema, hash: Hash, intervals: Sequence[KeyInterval] = (WHOLE,)) -> str:
    """One row per interval that has rows: its ``number``, ``n`` rows, and per column ``c0``, ``c1`` … the sum of its
    hashes."""
    numbers = range(len(schema.columns))
    hashes = [f"{_hash('k', f't{number}', hash)} AS h{number}" for number in numbers]
    sums = [f"CAST({_sum(f'h{number}')} AS STRING) AS c{number}" for number in numbers]
    rows = f"SELECT number, {', '.join(hashes)} FROM ({_texts(view, schema, intervals)})"
    return f"SELECT number, count(*) AS n, {', '.join(sums)} FROM ({rows}) GROUP BY number"


def rows_sql(view: str, schema: TableSchema, intervals: Sequence[KeyInterval] = (WHOLE,)) -> str:
    """Per row ``k``, the text of its key, and ``h``, a hash of each value, separated by commas. Without a key ``k`` is
    the text of all columns, and ``h`` one hash."""
    texts = [f"t{number}" for number in range(len(schema.columns))]
    each = ", ".join(f"substr(md5({_null_safe(text)}), 1, {HASH_DIGITS})" for text in texts)
    hashes = f"concat_ws(',', {each})" if schema.key else f"md5({_joined(texts)})"
    return f"SELECT k, {hashes} AS h FROM ({_texts(view, schema, intervals)})"


def key_sql(schema: TableSchema) -> str:
    """The text ``k`` of a row of a table with a key."""
    return _joined(checksum_text(schema.column(name)) for name in schema.key)


def intervals_sql(schema: TableSchema, intervals: Sequence[KeyInterval]) -> str:
    """The condition for rows in one of the intervals; empty if all rows are."""
    return within_sql(intervals, partial(_compare, schema, ">"), partial(_compare, schema, "<="))


def live_rows(soft: bool) -> str:
    """The condition for rows that also exist in the source."""
    return f"NOT {DELETED}" if soft else "true"


def _texts(view: str, schema: TableSchema, intervals: Sequence[KeyInterval]) -> str:
    texts = ", ".join(f"{checksum_text(column)} AS t{number}" for number, column in enumerate(schema.columns))
    key = [schema.names.index(name) for name in schema.key] or range(len(schema.columns))
    within = intervals_sql(schema, intervals)
    number = number_sql(intervals, partial(_compare, schema, "<="))
    rows = f"SELECT {texts}, {number} AS number FROM {quoted(view)}{f' WHERE {within}' if within else ''}"
    return f"SELECT *, {_joined(f't{number}' for number in key)} AS k FROM ({rows})"


def _compare(schema: TableSchema, operator: str, key: Key) -> str:
    """A comparison of the key of a row with a bound, whose texts are those of ``checksum_text``."""
    columns = [schema.column(name) for name in schema.key]
    literals = [literal(text, column.type) for column, text in zip(columns, key, strict=True)]
    return lexicographic([quoted(column.name) for column in columns], literals, operator)


def checksum_text(column: Column) -> str:
    name = quoted(column.name)
    match column.type.kind:
        case Kind.BOOLEAN:
            return f"CASE {name} WHEN true THEN 't' WHEN false THEN 'f' END"
        case Kind.FLOAT32:
            return _bits(name, "java.lang.Float", "floatToIntBits", "0F")
        case Kind.FLOAT64:
            return _bits(name, "java.lang.Double", "doubleToLongBits", "0D")
        case Kind.BYTES:
            return f"lower(hex({name}))"
        case Kind.DATE:
            return f"date_format({name}, 'yyyy-MM-dd')"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"date_format({name}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
        case Kind.DECIMAL | Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.TEXT | Kind.JSON | Kind.UUID:
            return f"CAST({name} AS STRING)"


def _bits(name: str, java_class: str, method: str, zero: str) -> str:
    """The bits of a float as an integer, since no two systems print floats alike. All NaN are equal."""
    bits = f"reflect('{java_class}', '{method}', coalesce({name}, {zero}))"
    return f"CASE WHEN {name} IS NULL THEN NULL WHEN isnan({name}) THEN 'NaN' ELSE {bits} END"


def _null_safe(text: str) -> str:
    """Replaces NULL by a text that no value has."""
    return f"coalesce({text}, concat(chr(2), 'null'))"


def _joined(texts: Iterable[str]) -> str:
    return f"concat_ws(chr(1), {', '.join(map(_null_safe, texts))})"


def _hash(key: str, text: str, hash: Hash) -> str:
    """A BIGINT of key and value."""
    match hash:
        case Hash.MD5:
            md5 = f"md5(concat_ws(chr(1), {key}, {_null_safe(text)}))"
            return f"CAST(translate(substr({md5}, 1, 18), 'abcdef', '012345') AS BIGINT)"
        case Hash.XX:
            return f"xxhash64({key}, {text})"


def _sum(number: str) -> str:
    return f"CAST(sum({number} DIV {HALF}) AS DECIMAL(38,0)) * {HALF} + sum({number} % {HALF})"
