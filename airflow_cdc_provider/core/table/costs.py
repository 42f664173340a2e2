"""What a copy costs, by day of the last 30 days. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta

from airflow_cdc_provider.core.times import parse_utc

PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class Cost:
    """``seconds``: in which jobs worked on the copy, without the start of Spark and without the extraction, which reads
    all tables together. ``rows``: written. ``bytes``: of the change log, applied. ``billed``: by the target, by unit,
    as ``bytes_billed``."""

    seconds: float = 0.0
    rows: int = 0
    bytes: int = 0
    billed: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        billed = dict(Counter(self.billed) + Counter(other.billed))
        return Cost(round(self.seconds + other.seconds, 3), self.rows + other.rows, self.bytes + other.bytes, billed)


NOTHING = Cost()

Costs = Mapping[str, Cost]
"""Day in UTC, as ``2026-11-27`` → what was spent on it; without days that cost nothing."""


def with_cost(costs: Costs, cost: Cost, at: str) -> dict[str, Cost]:
    """With ``cost`` spent at ``at`` (UTC in ISO 8601 format), without what is older than 30 days."""
    moment = parse_utc(at).astimezone(UTC)
    first, today = (moment - PERIOD).date().isoformat(), moment.date().isoformat()
    kept = {day: spent for day, spent in costs.items() if day >= first}
    return kept if cost == NOTHING else {**kept, today: kept.get(today, NOTHING) + cost}


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, NOTHING)
