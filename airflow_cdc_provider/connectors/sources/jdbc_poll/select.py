"""The queries over one table. Pure: text is made by SQLAlchemy when they are run.

Every query has the selected columns, then the key, the timestamp, and whether the row filter takes the row.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable
from airflow_cdc_provider.connectors.sources.jdbc_poll.types import Type, comes_as_text, is_told_zoned
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import parameter
from airflow_cdc_provider.connectors.sources.polling.pages import Query
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.filters import literal
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS

TEXTUAL = frozenset({Kind.TEXT, Kind.JSON})
TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
INTEGERS = frozenset({Kind.INT16, Kind.INT32, Kind.INT64})
POSTGRESQL = "postgresql"
MYSQL = frozenset({"mysql", "mariadb"})
SPELLED = MYSQL | {POSTGRESQL}
"""Systems whose texts of a value are known, and that have times which no calendar has."""

Expression = sa.ColumnElement[Any]


@dataclass(frozen=True)
class Selectable:
    """``schema`` has the selected columns and the key in force. ``offset``: of timestamps without zone, to UTC."""

    described: PolledTable
    schema: TableSchema
    stamp: str
    offset: timedelta
    system: str
    where: Sequence[Condition] = ()

    @cached_property
    def table(self) -> sa.TableClause:
        columns = [sa.column(name, kind) for name, kind in self.described.types.items()]
        return sa.table(self.described.name, *columns, schema=self.described.namespace or None)

    def page(self, query: Query) -> sa.Select[Any]:
        """Up to ``query.rows`` rows of an interval."""
        stamp, keys = self.table.c[self.stamp], self._keys
        select = self._select().limit(query.rows)
        if query.unstamped:
            behind = [self._behind(query.after.key)] if query.after else []
            return select.where(stamp.is_(None), *behind).order_by(*keys)
        return select.where(*self._interval(query)).order_by(stamp, *keys)

    def holds_any(self, query: Query, sweep: bool) -> sa.Select[Any]:
        stamp = self.table.c[self.stamp]
        inside = sa.and_(*self._interval(query))
        return sa.select(sa.literal(1)).where(sa.or_(inside, stamp.is_(None)) if sweep else inside).limit(1)

    def never_again(self, query: Query, only: Sequence[Expression]) -> sa.Select[Any]:
        """Whether there is a row that comes before the interval, of those ``only``. Rows without timestamp come with
        every interval."""
        stamp, last = self.table.c[self.stamp], query.after
        if last is None:
            before = [stamp < self.asked(query.since)]
        else:
            before = [stamp <= self.asked(last.stamp)] if last.stamp else [stamp.is_not(None)]
        return sa.select(sa.literal(1)).select_from(self.table).where(*before, *only).limit(1)

    def rows(self, low: int | None = None, high: int | None = None) -> sa.Select[Any]:
        """The rows of a copy, with leading key values from ``low`` up to, but not including, ``high``."""
        first = self._keys[0]
        bounds = [first >= low] if low is not None else []
        bounds += [first < high] if high is not None else []
        return self._select().where(*(self._condition(one) for one in self.where), *bounds)

    def extent(self) -> sa.Select[Any]:
        """Number of rows, least and greatest leading key value."""
        first = self._as_told(self.schema.key[0])
        return sa.select(sa.func.count(), sa.func.min(first), sa.func.max(first)).select_from(self.table)

    def asked(self, moment: datetime) -> Any:
        """A moment as a value of the timestamp column."""
        kind = self.described.schema.column(self.stamp).type.kind
        if kind is Kind.TIMESTAMP:
            return moment.replace(tzinfo=None) + self.offset
        return moment if is_told_zoned(self._type(self.stamp), self.system) else moment.replace(tzinfo=None)

    @cached_property
    def _keys(self) -> list[Expression]:
        return [self.table.c[name] for name in self.schema.key]

    def _select(self) -> sa.Select[Any]:
        takes = sa.and_(sa.true(), *(self._condition(one) for one in self.where))
        taken = sa.case((takes, 1), else_=0) if self.where else sa.literal(1)
        names = (*(column.text_of or column.name for column in self.schema.columns), *self.schema.key, self.stamp)
        columns = (*map(self._as_told, names), taken)
        return sa.select(*(column.label(f"c{at}") for at, column in enumerate(columns)))

    def _as_told(self, name: str) -> Expression:
        """For what no calendar has a driver gives an error, NULL or another date; the server's text is exact."""
        kind = self.described.schema.column(name).type.kind
        column: Expression = self.table.c[name]
        decimal = isinstance(self._type(name), sa.Numeric)
        as_text = kind in TEXTUAL and not decimal and not comes_as_text(self._type(name))
        spelled = self.is_cast(name) or (kind in TIMES and self.system in SPELLED)
        if as_text or spelled:
            return sa.cast(column, sa.Text)
        return self._every_digit(column) if kind in FLOATS else column

    def _every_digit(self, column: Expression) -> Expression:
        """MySQL shows six digits of a FLOAT, and all of a sum. SQLAlchemy takes its floating numbers for decimals, and
        rounds them to ten places."""
        number = column + sa.literal_column("0.0e0") if self.system in MYSQL else column
        return sa.type_coerce(number, sa.Double(asdecimal=False))

    def is_cast(self, name: str) -> bool:
        """The definition wants a text of what is none."""
        wanted = next((column.type.kind for column in self.schema.columns if column.name == name), None)
        return wanted is Kind.TEXT and self.described.schema.column(name).type.kind not in TEXTUAL

    def _interval(self, query: Query) -> list[Expression]:
        stamp = self.table.c[self.stamp]
        upto: Expression = stamp <= self.asked(query.upto)
        if query.after is None or query.after.stamp is None:
            return [stamp >= self.asked(query.since), upto]
        last = self.asked(query.after.stamp)
        if not query.after.key:
            return [stamp > last, upto]
        behind = sa.or_(stamp > last, sa.and_(stamp == last, self._behind(query.after.key)))
        return [stamp >= last, behind, upto]

    def _behind(self, key: str) -> Expression:
        """Keys greater than this one, column by column."""
        values = [self._key_value(name, value) for name, value in zip(self.schema.key, json.loads(key), strict=True)]
        pairs = list(zip(self._keys, values, strict=True))
        return sa.or_(
            *(
                sa.and_(*(column == value for column, value in pairs[:at]), pairs[at][0] > pairs[at][1])
                for at in range(len(pairs))
            )
        )

    def _key_value(self, name: str, value: Any) -> Any:
        """A key that is copied as text is compared as what it is at the source."""
        kind = self.described.schema.column(name).type
        if not self.is_cast(name):
            return parameter(kind, value, is_told_zoned(self._type(name), self.system))
        if kind.kind in INTEGERS:
            return int(value)
        return sa.cast(sa.literal(value, sa.Text), self._type(name)) if self.system == POSTGRESQL else value

    def _type(self, name: str) -> Type:
        return self.described.types[name]

    def _condition(self, one: Condition) -> Expression:
        column = self.table.c[one.column]
        kind = self.described.schema.column(one.column).type.kind
        given = one.value if isinstance(one.value, tuple) else () if one.value is None else (one.value,)
        values = [literal(kind, value) for value in given]
        match one.op:
            case Comparison.IS_NULL:
                return column.is_(None)
            case Comparison.IS_NOT_NULL:
                return column.is_not(None)
            case Comparison.IN:
                return column.in_(values)
            case Comparison.NOT_IN:
                return column.not_in(values)
            case _:
                return COMPARED[one.op](column, values[0])


COMPARED: Mapping[Comparison, Callable[[Any, Any], Expression]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.NOT_EQUAL: operator.ne,
    Comparison.LESS: operator.lt,
    Comparison.LESS_OR_EQUAL: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.GREATER_OR_EQUAL: operator.ge,
}
