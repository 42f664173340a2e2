"""Intervals of a table's key, and the SQL that all dialects share to find the interval of a row.

A key is the texts of its columns, which both sides of a comparison spell alike. Only keys that every system orders
alike are divided: numbers, times, UUIDs, and texts by their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_cdc_provider.core.table.schema import Kind, TableSchema

Key = tuple[str, ...]
Bound = Callable[[Key], str]
"""SQL of a condition on the key columns of a row, for a bound of an interval."""

ORDERED_ALIKE = frozenset(
    {
        Kind.INT16,
        Kind.INT32,
        Kind.INT64,
        Kind.DECIMAL,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.UUID,
        Kind.TEXT,
    }
)


@dataclass(frozen=True)
class KeyInterval:
    """The keys above ``after``, up to and including ``upto``. None: unbounded."""

    after: Key | None = None
    upto: Key | None = None

    def split(self, cuts: Sequence[Key]) -> tuple[KeyInterval, ...]:
        """``cuts``: keys in the interval, in their order."""
        return tuple(KeyInterval(after, upto) for after, upto in pairwise([self.after, *cuts, self.upto]))


WHOLE = KeyInterval()


@dataclass(frozen=True)
class IntervalSums:
    """The rows of an interval: their number and, per column, the sum of their hashes."""

    rows: int
    columns: tuple[int, ...]


def has_ordered_key(schema: TableSchema) -> bool:
    """Whether every system orders the keys of the table alike. A key column with NULL or with values that a second
    column has as text does not count."""
    columns = [schema.column(name) for name in schema.key]
    return bool(columns) and all(
        column.type.kind in ORDERED_ALIKE and not column.nullable and not schema.has_text_of(column.name)
        for column in columns
    )


def number_sql(intervals: Sequence[KeyInterval], up_to: Bound) -> str:
    """The number of the interval of a row that is in one of them. ``intervals``: in the order of their keys."""
    return _search(intervals, 0, len(intervals) - 1, up_to)


def _search(intervals: Sequence[KeyInterval], first: int, last: int, up_to: Bound) -> str:
    """A binary search."""
    if first == last:
        return str(first)
    middle = (first + last) // 2
    end = intervals[middle].upto
    assert end is not None, "only the last interval is unbounded"
    lower, upper = _search(intervals, first, middle, up_to), _search(intervals, middle + 1, last, up_to)
    return f"CASE WHEN {up_to(end)} THEN {lower} ELSE {upper} END"


def within_sql(intervals: Sequence[KeyInterval], above: Bound, up_to: Bound) -> str:
    """Whether a row is in one of the intervals; empty if every row is."""
    joined: list[KeyInterval] = []
    for interval in intervals:
        if joined and joined[-1].upto == interval.after:
            joined[-1] = KeyInterval(joined[-1].after, interval.upto)
        else:
            joined.append(interval)
    if WHOLE in joined:
        return ""
    return "(" + " OR ".join(_inside(interval, above, up_to) for interval in joined) + ")"


def _inside(interval: KeyInterval, above: Bound, up_to: Bound) -> str:
    conditions = [above(interval.after)] if interval.after is not None else []
    conditions += [up_to(interval.upto)] if interval.upto is not None else []
    return "(" + " AND ".join(conditions) + ")"


def lexicographic(columns: Sequence[str], literals: Sequence[str], operator: str) -> str:
    """A comparison of composite keys, column by column. ``operator``: ``<=`` or ``>``."""
    column, literal, *_ = *columns[:1], *literals[:1]
    if len(columns) == 1:
        return f"{column} {operator} {literal}"
    rest = lexicographic(columns[1:], literals[1:], operator)
    return f"({column} {operator[0]} {literal} OR ({column} = {literal} AND {rest}))"
