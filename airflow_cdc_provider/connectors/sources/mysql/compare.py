"""SQL by which the server computes row counts and checksums per interval of the key, and hashes of rows. Text only.

The text forms equal those of ``targets/sparksql/compare.py``. They use neither the binlog's nor the copy's conversion,
so an error in those becomes visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, quoted
from airflow_cdc_provider.connectors.sources.mysql.conditions import row_filter
from airflow_cdc_provider.connectors.sources.mysql.copy import EXPRESSIONS, column_list, table_sql
from airflow_cdc_provider.connectors.sources.mysql.types import GEOMETRIES
from airflow_cdc_provider.core.proof.key_intervals import (
    Key,
    KeyInterval,
    has_ordered_key,
    lexicographic,
    number_sql,
    within_sql,
)
from airflow_cdc_provider.core.spec.definition import Condition
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema

NUMBERS = frozenset({Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL})
SEPARATOR, NULL = "CHAR(1 USING utf8mb4)", "CONCAT(CHAR(2 USING utf8mb4), 'null')"
HASH_DIGITS = 16
"""Of the hash of one value."""


@dataclass(frozen=True)
class Statement:
    """``text`` has marks for the parameters, and other per cent signs twice."""

    text: str
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True)
class Statements:
    """The statements about one table. ``schema``: the columns to compare."""

    table: CatalogTable
    schema: TableSchema
    where: tuple[Condition, ...]

    @property
    def possible(self) -> bool:
        """Whether SQL has the text forms: it has none of the bits of a float."""
        columns = self.schema.columns
        return has_ordered_key(self.schema) and all(
            column.type.kind not in (Kind.FLOAT32, Kind.FLOAT64, Kind.JSON)
            and not column.text_of
            and self._data_type(column) not in GEOMETRIES
            and (self._data_type(column) != "bit" or column.type.kind is Kind.BOOLEAN)
            for column in columns
        )

    def sums(self, intervals: Sequence[KeyInterval]) -> Statement:
        """One row per interval that has rows: its number, the number of rows, and per column the sum of its hashes."""
        sums = [f"SUM({_hash('k', f't{number}')})" for number in range(len(self.schema.columns))]
        texts = self._texts(intervals)
        rows = f"SELECT number, COUNT(*), {', '.join(sums)} FROM ({texts.text}) AS texts GROUP BY number"
        return replace(texts, text=rows)

    def hashes(self, intervals: Sequence[KeyInterval]) -> Statement:
        """Per row the text of its key, and a hash of each value, separated by commas."""
        texts, columns = self._texts(intervals), range(len(self.schema.columns))
        each = ", ".join(f"LEFT(MD5({_marked(f't{number}')}), {HASH_DIGITS})" for number in columns)
        return replace(texts, text=f"SELECT k, CONCAT_WS(',', {each}) FROM ({texts.text}) AS texts")

    def cuts(self, interval: KeyInterval, rows: int) -> Statement:
        """The texts of the key of every ``rows``-th row of an interval, in the order of the keys."""
        key = [self.schema.column(name) for name in self.schema.key]
        texts = ", ".join(f"{self._text(column)} AS t{number}" for number, column in enumerate(key))
        numbers = f"ROW_NUMBER() OVER (ORDER BY {', '.join(map(self._key, key))}) AS number"
        where = self._where([interval])
        found = f"SELECT {texts}, {numbers} FROM {self._name}{where.text}"
        names = ", ".join(f"t{number}" for number in range(len(key)))
        return replace(
            where, text=f"SELECT {names} FROM ({found}) AS rows_ WHERE MOD(number, {rows}) = 0 ORDER BY number"
        )

    def rows(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> Statement:
        """The rows with these texts of keys, as for a copy with this schema."""
        key = _joined([_marked(self._text(self.schema.column(name))) for name in self.schema.key])
        found = f"CAST({key} AS BINARY) IN ({', '.join(map(_bytes, keys))})"
        columns, where = column_list(self.table, self.schema).replace("%", "%%"), self._where(intervals)
        both = f"{where.text} AND {found}" if where.text else f" WHERE {found}"
        return replace(where, text=f"SELECT {columns} FROM {self._name}{both}")

    def _texts(self, intervals: Sequence[KeyInterval]) -> Statement:
        where = self._where(intervals)
        listed = ", ".join(f"{self._text(column)} AS t{number}" for number, column in enumerate(self.schema.columns))
        key = _joined([_marked(f"t{self.schema.names.index(name)}") for name in self.schema.key])
        number = number_sql(intervals, partial(self._compare, "<="))
        found = f"SELECT {listed}, {number} AS number FROM {self._name}{where.text}"
        return replace(where, text=f"SELECT *, {key} AS k FROM ({found}) AS rows_")

    def _where(self, intervals: Sequence[KeyInterval]) -> Statement:
        conditions, parameters = row_filter(self.where, self.schema, self.table)
        if within := within_sql(intervals, partial(self._compare, ">"), partial(self._compare, "<=")):
            conditions.append(within)
        return Statement(f" WHERE {' AND '.join(conditions)}" if conditions else "", tuple(parameters))

    def _text(self, column: Column) -> str:
        name = self._value(column)
        match column.type.kind:
            case Kind.BOOLEAN:
                text = f"CASE {name} WHEN 1 THEN 't' WHEN 0 THEN 'f' END"
            case Kind.BYTES:
                text = f"LOWER(HEX({name}))"
            case Kind.DATE:
                text = f"DATE_FORMAT({name}, '%%Y-%%m-%%d')"
            case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
                text = f"DATE_FORMAT({name}, '%%Y-%%m-%%d %%H:%%i:%%s.%%f')"
            case kind if kind in NUMBERS:
                text = f"CAST({name} + 0 AS CHAR)"  # without the zeros of ZEROFILL
            case _:
                text = name
        return f"CONVERT({text} USING utf8mb4)"

    def _compare(self, operator: str, key: Key) -> str:
        columns = [self.schema.column(name) for name in self.schema.key]
        literals = [
            text if column.type.kind in NUMBERS else _bytes(text) for column, text in zip(columns, key, strict=True)
        ]
        return lexicographic([self._key(column) for column in columns], literals, operator)

    def _key(self, column: Column) -> str:
        """A key column as every system orders it: texts by their bytes, and not by their collation."""
        value = self._value(column)
        return value if column.type.kind in NUMBERS else f"CAST(CONVERT({value} USING utf8mb4) AS BINARY)"

    def _value(self, column: Column) -> str:
        return EXPRESSIONS.get(self._data_type(column), "{0}").format(quoted(column.name)).replace("%", "%%")

    def _data_type(self, column: Column) -> str:
        return next(one.data_type for one in self.table.columns if one.name == column.name)

    @property
    def _name(self) -> str:
        return table_sql(self.table).replace("%", "%%")


def _bytes(text: str) -> str:
    return f"X'{text.encode().hex()}'"


def _marked(text: str) -> str:
    """NULL becomes a text that no value has."""
    return f"COALESCE({text}, {NULL})"


def _joined(texts: Sequence[str]) -> str:
    return f"CONCAT_WS({SEPARATOR}, {', '.join(texts)})"


def _hash(key: str, text: str) -> str:
    """Eighteen decimal digits of key and value: the hexadecimal ones become others."""
    digits = f"LEFT(MD5({_joined([key, _marked(text)])}), 18)"
    for letter, digit in zip("abcdef", "012345", strict=True):
        digits = f"REPLACE({digits}, '{letter}', '{digit}')"
    return f"CAST({digits} AS SIGNED)"
