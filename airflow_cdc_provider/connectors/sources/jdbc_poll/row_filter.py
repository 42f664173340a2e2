"""The row filter of a polled table. Pure.

Its conditions are decided on the values that were read, by the comparisons of every row filter: servers compare texts
by collations, with or without trailing blanks, and numbers in types of their own. The server only leaves out rows by
comparisons that are true for every row of the filter, so that its indexes are of use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, oracle

from airflow_cdc_provider.connectors.sources.jdbc_poll.column_rules import Order, Select, SourceType, Type
from airflow_cdc_provider.connectors.sources.jdbc_poll.values import ReadValue
from airflow_cdc_provider.connectors.unrepresentable import (
    INFINITE,
    MORE_DIGITS,
    NO_DATE,
    OTHER_TYPE,
    OTHER_YEAR,
    Unrepresentable,
)
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.filters import InvalidDate, OutOfRange, Value, literal, matches
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema

Expression = sa.ColumnElement[Any]

POSTGRESQL, SQL_SERVER, SQLITE = "postgresql", "mssql", "sqlite"
MYSQL = frozenset({"mysql", "mariadb"})
EXACT_NUMBERS = MYSQL | {POSTGRESQL}
"""Systems that compare decimals and times as Python does, if the parameter has no precision of its own."""

PLAIN_TEXTS = frozenset(
    {sa.VARCHAR, sa.NVARCHAR, sa.TEXT, oracle.VARCHAR2, mysql.VARCHAR}
    | {mysql.TINYTEXT, mysql.TEXT, mysql.MEDIUMTEXT, mysql.LONGTEXT}
)
"""Types whose equal texts are equal under every collation. A CHAR has blanks that only some comparisons ignore."""

LONGEST_INTEGER = 2**63 - 1
NULL_TESTS = frozenset({Comparison.IS_NULL, Comparison.IS_NOT_NULL})
EQUALITY = frozenset({Comparison.EQUAL, Comparison.IN})
INTEGERS = frozenset({Kind.INT16, Kind.INT32, Kind.INT64})
TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
OPERATORS: Mapping[Comparison, Callable[[Any, Any], Expression]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.NOT_EQUAL: operator.ne,
    Comparison.LESS: operator.lt,
    Comparison.LESS_OR_EQUAL: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.GREATER_OR_EQUAL: operator.ge,
}


@dataclass(frozen=True)
class RowFilter:
    """``schema``: of the source. ``columns`` are read with each row, whether they are copied or not."""

    conditions: Sequence[Condition]
    schema: TableSchema
    read_value: ReadValue

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(condition.column for condition in self.conditions))

    def selects(self, values: Sequence[Any]) -> bool:
        """``values``: of ``columns``, as the driver returns them. Raises Unrepresentable for one of another type than
        its column, which no comparison has."""
        read = zip(self.columns, self._types, values, strict=True)
        return matches(self.conditions, {name: self._compared(kind, value) for name, kind, value in read})

    def _compared(self, kind: LogicalType, value: Any) -> Value | None:
        """A value that the kind does not have is compared as in the streams."""
        try:
            compared: Value | None = self.read_value(kind, value)
            return compared
        except Unrepresentable as error:
            if str(error) == OTHER_TYPE:
                raise
            return _special_value(kind.kind, str(error), error.text)

    @cached_property
    def _types(self) -> list[LogicalType]:
        return [self.schema.column(name).type for name in self.columns]


def _special_value(kind: Kind, what: str, text: str) -> Value | None:
    if what in (INFINITE, OTHER_YEAR):
        return OutOfRange(kind, after=not text.startswith("-") and not text.endswith("BC"))
    if what == NO_DATE:
        return InvalidDate(kind, text)
    return Decimal(text) if what == MORE_DIGITS else None


def narrowing(
    condition: Condition, column: Expression, read: SourceType, declared: Type, system: str
) -> Expression | None:
    """A condition of the server that each row of the filter meets, or None."""
    kind, op = read.type.kind, condition.op
    if read.select is not Select.VALUE or read.order is not Order.VALUE:
        return None
    if op in NULL_TESTS:  # NaN is NULL to a row filter if the column is a decimal
        return None if kind is Kind.DECIMAL else column.is_(None) if op is Comparison.IS_NULL else column.is_not(None)
    given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    values = [literal(kind, value) for value in given if value is not None]
    bound = [_parameter(value, read.type.kind, declared, system) for value in values]
    if any(value is None for value in bound) or (kind is Kind.TEXT and op not in EQUALITY):
        return None
    if op in (Comparison.IN, Comparison.NOT_IN):
        return column.in_(bound) if op is Comparison.IN else column.not_in(bound)
    return OPERATORS[op](column, bound[0])


def _parameter(value: Value, kind: Kind, declared: Type, system: str) -> Expression | None:
    """In a type without precision, to which no server rounds it. None if the server compares it in another way."""
    if kind is Kind.TEXT and isinstance(value, str):
        return sa.literal(value, sa.String()) if _has_equality(value, type(declared), system) else None
    if kind in INTEGERS and system != SQLITE and isinstance(value, Decimal):
        whole = value == value.to_integral_value() and abs(value) <= LONGEST_INTEGER
        return sa.literal(int(value), sa.BigInteger()) if whole else None
    if kind is Kind.DECIMAL and system in EXACT_NUMBERS:
        return sa.literal(value, sa.Numeric())
    if kind in TIMES and system in EXACT_NUMBERS:
        return _time(value, kind, system)
    return None


def _has_equality(value: str, declared: type[Type], system: str) -> bool:
    """Whether the server compares a text of the type with this one. SQL Server does not compare its oldest type, MySQL
    refuses characters that the character set of the column lacks, and PostgreSQL refuses a NUL character."""
    if declared not in PLAIN_TEXTS or (system == SQL_SERVER and declared is sa.TEXT):
        return False
    return "\0" not in value and (value.isascii() or system not in MYSQL)


def _time(value: Value, kind: Kind, system: str) -> Expression:
    if kind is Kind.DATE:
        return sa.literal(value, sa.Date())
    zoned = kind is Kind.TIMESTAMPTZ and system == POSTGRESQL
    if isinstance(value, datetime) and value.tzinfo is not None and not zoned:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return sa.literal(value, sa.TIMESTAMP(timezone=zoned))
