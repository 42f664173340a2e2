"""The age of a copy, compared with the ``freshness`` of the definition. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import WITHOUT_COPY
from airflow_cdc_provider.core.times import parse_utc, utc_text


@dataclass(frozen=True)
class Freshness:
    """``lag_s``: the copy contains all changes older than this; None if there is no copy yet. ``late``: the lag, or the
    time that the table has waited for its first copy, exceeds ``freshness`` of the YAML."""

    lag_s: float | None
    late: bool


def lagging_since(row: TableRow) -> str:
    """``fresh_at`` by the clock of the state store, by which the lag counts."""
    if not row.fresh_at or not row.clock_ahead_s:
        return row.fresh_at
    return utc_text(parse_utc(row.fresh_at) - timedelta(seconds=row.clock_ahead_s))


def with_fresh_at(row: TableRow, fresh_at: str, clock_ahead_s: float, at: str) -> TableRow:
    """The row with ``fresh_at`` of a run that ends ``at``. Unchanged if that is no later than the row's, or lies in the
    future: the source's clock has been set back since. Replaced in any case if the row's lies in the future."""
    later = replace(row, fresh_at=fresh_at, clock_ahead_s=clock_ahead_s)
    if not row.fresh_at:
        return later
    known, found, end = (parse_utc(text) for text in (lagging_since(row), lagging_since(later), at))
    return later if known <= found <= end or end < known else row


def aging_since(row: TableRow) -> str:
    """The time whose distance from now is compared with ``freshness``; empty if it is unknown."""
    return lagging_since(row) or row.failing_since or row.since


def freshness(row: TableRow, allowed: timedelta, now: str) -> Freshness:
    """The freshness of a table by its row in the state store. A table that is not copied has none; a paused table
    ages."""
    if row.state in WITHOUT_COPY:
        return Freshness(None, False)
    since = aging_since(row)
    if not since:
        return Freshness(None, False)
    age = max(0.0, (parse_utc(now) - parse_utc(since)).total_seconds())
    return Freshness(age if row.fresh_at else None, age > allowed.total_seconds())
