"""The queries over one table, as SQLAlchemy expressions. Pure.

The columns of ``page`` and ``rows`` are the selected columns, the key, the timestamp, and those of the row filter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Order, Select, SourceType, Type
from airflow_cdc_provider.connectors.sources.jdbc_poll.row_filter import (
    INTEGERS,
    MYSQL,
    POSTGRESQL,
    SQL_SERVER,
    SQLITE,
    TIMES,
    Expression,
    RowFilter,
    narrowing,
)
from airflow_cdc_provider.connectors.sources.jdbc_poll.sqlite_times import WALL_TIME, compared, texts_around
from airflow_cdc_provider.connectors.sources.jdbc_poll.sqlite_values import stored_value
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import source_type
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import ReadValue, column_value, parameter
from airflow_cdc_provider.connectors.sources.polling.pages import Query
from airflow_cdc_provider.core.spec.definition import Condition
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

TEXTUAL = frozenset({Kind.TEXT, Kind.JSON})
EXACT_TEXT = MYSQL | {POSTGRESQL}
"""Systems whose texts of values are known. Their dates and timestamps may be unrepresentable."""

AS_STORED = sa.types.NullType()
"""The value that the driver returns, whatever the declared type."""


@dataclass(frozen=True)
class TableQueries:
    """``schema`` has the selected columns, and the key of the table's rule. ``offset``: UTC offset of timestamps
    without time zone."""

    described: PolledTable
    schema: TableSchema
    timestamp_column: str
    offset: timedelta
    system: str
    where: Sequence[Condition] = ()

    @cached_property
    def row_filter(self) -> RowFilter:
        return RowFilter(self.where, self.described.schema, self.read_value)

    @property
    def read_value(self) -> ReadValue:
        return stored_value if self.system == SQLITE else column_value

    @cached_property
    def table(self) -> sa.TableClause:
        columns = [sa.column(name, kind) for name, kind in self.described.types.items()]
        return sa.table(self.described.name, *columns, schema=self.described.namespace or None)

    def page(self, query: Query) -> sa.Select[Any]:
        """Up to ``query.rows`` rows of an interval."""
        timestamp, keys = self._moment, self._keys
        select = self._select().limit(query.rows)
        if query.null_timestamps:
            after = [self._after(query.after.key)] if query.after else []
            return select.where(self.table.c[self.timestamp_column].is_(None), *after).order_by(*keys)
        return select.where(*self._interval(query)).order_by(timestamp, *keys)

    def any_row(self, query: Query, include_null_timestamps: bool) -> sa.Select[Any]:
        condition: Expression = sa.and_(*self._interval(query))
        if include_null_timestamps:
            condition = sa.or_(condition, self.table.c[self.timestamp_column].is_(None))
        return self._from_table(sa.literal(1)).where(condition).limit(1)

    def any_row_before(self, query: Query, conditions: Sequence[Expression]) -> sa.Select[Any]:
        """Any row before the interval that meets the conditions. Rows without timestamp are in every interval."""
        timestamp, last = self._moment, query.after
        if last is None:
            before = [timestamp < self._timestamp(query.since)]
        elif last.timestamp:
            before = [timestamp <= self._timestamp(last.timestamp)]
        else:
            before = [timestamp.is_not(None)]
        return self._from_table(sa.literal(1)).where(*before, *conditions).limit(1)

    def rows(self, low: int | None = None, high: int | None = None) -> sa.Select[Any]:
        """The rows of a copy, with leading key values in ``[low, high)``. Some may not match the row filter."""
        first = self.table.c[self.schema.key[0]]
        bounds = [first >= low] if low is not None else []
        bounds += [first < high] if high is not None else []
        return self._select().where(*self._narrowing(), *bounds)

    def extent(self) -> sa.Select[Any]:
        """Number of rows, least and greatest leading key value."""
        first = self._selected(self.schema.key[0])
        return self._from_table(sa.func.count(), sa.func.min(first), sa.func.max(first))

    def unknown_timestamp(self) -> sa.Select[Any] | None:
        """A timestamp in none of the forms that SQLite's programs write. None for a system that has one form."""
        if self.system != SQLITE:
            return None
        stored = self.table.c[self.timestamp_column]
        unknown = sa.and_(stored.is_not(None), self._moment.is_(None))
        return self._from_table(sa.type_coerce(stored, AS_STORED)).where(unknown).limit(1)

    def timestamp_parameter(self, timestamp: datetime) -> Any:
        """``timestamp`` as a value of the timestamp column."""
        kind = self.described.schema.column(self.timestamp_column).type.kind
        if kind is Kind.TIMESTAMP:
            return timestamp.replace(tzinfo=None) + self.offset
        return timestamp if self._source_type(self.timestamp_column).binds_zone else timestamp.replace(tzinfo=None)

    def is_refused(self, name: str) -> bool:
        """Whether no value of the column's type can be copied."""
        return self._source_type(name).select is Select.REFUSED

    def has_no_order(self, name: str) -> bool:
        """Whether pages cannot follow the column."""
        return self._source_type(name).order is Order.NONE

    @cached_property
    def _keys(self) -> list[Expression]:
        return [self._ordered(name) for name in self.schema.key]

    def _ordered(self, name: str) -> Expression:
        """SQLite: by the bytes of texts, because an index may tell apart what the collation of the column calls
        equal."""
        column: Expression = self.table.c[name]
        if self.system == SQLITE:
            return sa.type_coerce(sa.collate(sa.type_coerce(column, sa.Text), "BINARY"), self._type(name))
        return sa.cast(column, sa.Text) if self._source_type(name).order is Order.TEXT else column

    def _select(self) -> sa.Select[Any]:
        names = [column.text_of or column.name for column in self.schema.columns]
        copied, filtered = (*names, *self.schema.key), self.row_filter.columns
        columns = (*map(self._selected, copied), self._selected_timestamp, *map(self._in_its_kind, filtered))
        return self._from_table(*(column.label(f"c{index}") for index, column in enumerate(columns)))

    def _from_table(self, *columns: Expression) -> sa.Select[Any]:
        """Every query of the table. The rows of inheritance children belong to other tables."""
        select = sa.select(*columns).select_from(self.table)
        return select.with_hint(self.table, "ONLY", POSTGRESQL) if self.described.read_alone else select

    @property
    def _selected_timestamp(self) -> Expression:
        return self._moment if self.system == SQLITE else self._selected(self.timestamp_column)

    @cached_property
    def _moment(self) -> Expression:
        """The timestamp as it is compared and sorted."""
        stored = self.table.c[self.timestamp_column]
        if self.system != SQLITE:
            return stored
        return sa.Function(WALL_TIME, stored, int(self.offset.total_seconds()), type_=sa.Text())

    def _narrowing(self) -> Iterator[Expression]:
        for condition in self.where:
            name = condition.column
            found = narrowing(condition, self.table.c[name], self._source_type(name), self._type(name), self.system)
            if found is not None:
                yield found

    def _selected(self, name: str) -> Expression:
        if not self.is_cast(name):
            return self._in_its_kind(name)
        column: Expression = self.table.c[name]
        return self._text_unless_bytes(column) if self.system == SQLITE else sa.cast(column, sa.Text)

    def _in_its_kind(self, name: str) -> Expression:
        """Dates and timestamps are selected as text: for an unrepresentable value a driver raises an error, or returns
        NULL or another date."""
        kind = self.described.schema.column(name).type.kind
        column: Expression = self.table.c[name]
        select = self._source_type(name).select
        if self.system == SQLITE:
            return self._text_unless_bytes(column) if select is Select.TEXT else sa.type_coerce(column, AS_STORED)
        if select is Select.TEXT or (kind in TIMES and self.system in EXACT_TEXT):
            return sa.cast(column, sa.Text)
        if select is Select.NUMBER:
            return sa.type_coerce(column, sa.Numeric(asdecimal=True))
        if select is Select.BYTES:
            return sa.type_coerce(column, sa.LargeBinary())
        if select is Select.UTC:
            return sa.func.sys_extract_utc(column, type_=sa.TIMESTAMP())
        return self._all_digits(column) if kind in FLOATS else column

    @staticmethod
    def _text_unless_bytes(column: Expression) -> Expression:
        """SQLite casts bytes to whatever text they make."""
        text = sa.type_coerce(sa.cast(column, sa.Text), AS_STORED)
        return sa.case((sa.func.typeof(column) == "blob", sa.type_coerce(column, AS_STORED)), else_=text)

    def _all_digits(self, column: Expression) -> Expression:
        """MySQL returns six digits of a FLOAT, but all digits of a sum. SQLAlchemy reads floating-point numbers as
        decimals, and rounds them to ten digits."""
        number = column + sa.literal_column("0.0e0") if self.system in MYSQL else column
        return sa.type_coerce(number, sa.Double(asdecimal=False))

    def is_cast(self, name: str) -> bool:
        """Whether the definition casts the column to text."""
        kind = next((column.type.kind for column in self.schema.columns if column.name == name), None)
        return kind is Kind.TEXT and self.described.schema.column(name).type.kind not in TEXTUAL

    def _interval(self, query: Query) -> list[Expression]:
        timestamp = self._moment
        upto: Expression = timestamp <= self._timestamp(query.upto)
        if query.after is None or query.after.timestamp is None:
            return [*self._near(query.since, query.upto), timestamp >= self._timestamp(query.since), upto]
        near, last = self._near(query.after.timestamp, query.upto), self._timestamp(query.after.timestamp)
        if not query.after.key:
            return [*near, timestamp > last, upto]
        after = sa.or_(timestamp > last, sa.and_(timestamp == last, self._after(query.after.key)))
        return [*near, timestamp >= last, after, upto]

    def _near(self, since: datetime, upto: datetime) -> list[Expression]:
        """Conditions that an index serves where it does not serve those of the interval."""
        if self.system != SQLITE:
            return []
        stored = self.table.c[self.timestamp_column]
        least, most = (sa.literal(text, sa.Text) for text in texts_around(since, upto))
        return [stored >= least, stored <= most]

    def _after(self, key: str) -> Expression:
        """Keys greater than this one, compared column by column."""
        values = [self._key_value(name, value) for name, value in zip(self.schema.key, json.loads(key), strict=True)]
        pairs = list(zip(self._keys, values, strict=True))
        return sa.or_(
            *(
                sa.and_(*(column == value for column, value in pairs[:index]), pairs[index][0] > pairs[index][1])
                for index in range(len(pairs))
            )
        )

    def _key_value(self, name: str, value: Any) -> Any:
        """A key column is compared in its type at the source, whatever it is read as."""
        kind, read = self.described.schema.column(name).type, self._source_type(name)
        as_text = self.is_cast(name) or read.select is Select.TEXT
        if as_text and kind.kind in INTEGERS:
            return int(value)
        if self.system == POSTGRESQL and (as_text or read.select is Select.NUMBER or kind.kind is Kind.FLOAT32):
            return sa.cast(sa.literal(str(value), sa.Text), self._type(name))
        if read.select is Select.NUMBER:
            return Decimal(value)
        return value if as_text else self._bound(name, parameter(kind, value, read.binds_zone))

    def _timestamp(self, timestamp: datetime) -> Any:
        value = self.timestamp_parameter(timestamp)
        return compared(value) if self.system == SQLITE else self._bound(self.timestamp_column, value)

    def _bound(self, name: str, value: Any) -> Any:
        """SQL Server compares in the more precise type of both, in which a rounded value of the column differs from the
        value that the driver has read."""
        rounded = self.described.schema.column(name).type.kind in TIMES | FLOATS
        return sa.cast(value, self._type(name)) if self.system == SQL_SERVER and rounded else value

    def _type(self, name: str) -> Type:
        return self.described.types[name]

    def _source_type(self, name: str) -> SourceType:
        return source_type(self._type(name), self.system)
