"""Slices of a table by the time in one of its columns, which backfills copy one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from airflow_cdc_provider.core.spec.conditions import Comparison, Condition
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.table.schema import Kind


class SliceLength(StrEnum):
    """Of the calendar, in UTC."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True)
class Slices:
    column: str = doc("Column with a date or a time; rows with NULL are in no slice. Required for slices.", "")
    every: SliceLength = doc("Length of a slice: a day, month or year of the calendar, in UTC.", SliceLength.DAY)


@dataclass(frozen=True)
class Slice:
    """The rows of ``table`` whose ``column`` is in ``[start, end)``, UTC in ISO 8601 format."""

    table: str
    column: str
    start: str
    end: str

    def conditions(self, kind: Kind) -> tuple[Condition, ...]:
        """``kind``: of the column."""
        low, high = (_literal(datetime.fromisoformat(bound), kind) for bound in (self.start, self.end))
        return (
            Condition(self.column, Comparison.GREATER_OR_EQUAL, low),
            Condition(self.column, Comparison.LESS, high),
        )

    def __str__(self) -> str:
        return f"{self.column} from {self.start[:10]} to {self.end[:10]}"


SLICED_KINDS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def slice_between(table: str, slices: Slices, start: datetime, end: datetime) -> Slice | None:
    """All slices that start in ``[start, end)``, as one; None if there is none. So each slice belongs to one of the
    intervals of a schedule, whatever their length."""
    starts = list(_starts(slices.every, start.astimezone(UTC), end.astimezone(UTC)))
    if not starts:
        return None
    return Slice(table, slices.column, starts[0].isoformat(), _next(slices.every, starts[-1]).isoformat())


def _starts(every: SliceLength, start: datetime, end: datetime) -> Iterator[datetime]:
    at = start.replace(hour=0, minute=0, second=0, microsecond=0)
    at = at.replace(day=1) if every is not SliceLength.DAY else at
    at = at.replace(month=1) if every is SliceLength.YEAR else at
    while at < end:
        if at >= start:
            yield at
        at = _next(every, at)


def _next(every: SliceLength, at: datetime) -> datetime:
    match every:
        case SliceLength.DAY:
            return at + timedelta(days=1)
        case SliceLength.MONTH:
            return (at + timedelta(days=31)).replace(day=1)
        case SliceLength.YEAR:
            return at.replace(year=at.year + 1)


def _literal(bound: datetime, kind: Kind) -> str:
    if kind is Kind.DATE:
        return bound.date().isoformat()
    return bound.isoformat() if kind is Kind.TIMESTAMPTZ else bound.replace(tzinfo=None).isoformat()
