"""How old a copy is, and whether that is older than the definition allows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState


@dataclass(frozen=True)
class Freshness:
    """``lag_s``: what the source committed longer ago than that is in the copy; None where there is no copy yet.
    ``late``: it is more than ``freshness`` of the YAML. A table without copy is late when it waits for so long."""

    lag_s: float | None
    late: bool


def freshness(row: TableRow, allowed: timedelta, now: str) -> Freshness:
    """Of a table as the index knows it; a dropped one ages no more. A paused one does: its operator knows why."""
    if row.state is TableState.DROPPED:
        return Freshness(None, False)
    began = row.fresh_at or row.failing_since or row.since
    if not began:
        return Freshness(None, False)
    age = max(0.0, (moment(now) - moment(began)).total_seconds())
    return Freshness(age if row.fresh_at else None, age > allowed.total_seconds())


def moment(text: str) -> datetime:
    """Times of the index are UTC, whether or not they say so."""
    told = datetime.fromisoformat(text)
    return told if told.tzinfo else told.replace(tzinfo=UTC)
