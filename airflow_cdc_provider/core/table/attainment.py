"""How long a copy was older than ``freshness`` allows, measured at the end of each run. Pure.

Between two runs a copy ages steadily, so the part of this time in which it was late follows from the two ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.times import parse_utc

PERIOD = timedelta(days=30)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Attainment:
    """``since``: the first measurement; ``at``: the last. ``late_s``: late seconds by day, of days with any. Times are
    UTC in ISO 8601 format."""

    since: str = ""
    at: str = ""
    late_s: dict[str, float] = field(default_factory=dict)

    def measured(self, aging_since: str, allowed: timedelta, now: str) -> Attainment:
        """After the time up to ``now``, in which the copy had the age of ``aging_since``; empty: it had none."""
        if not self.at:
            return Attainment(now, now)
        late = {day: seconds for day, seconds in self.late_s.items() if day >= _day(parse_utc(now) - PERIOD)}
        if aging_since:
            start, end = max(parse_utc(self.at), parse_utc(aging_since) + allowed), parse_utc(now)
            while start < end:
                midnight = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + DAY
                late[_day(start)] = late.get(_day(start), 0) + (min(midnight, end) - start).total_seconds()
                start = midnight
        return Attainment(self.since, max(self.at, now), late)

    def fraction(self) -> float | None:
        """The fraction of the last 30 days in which the copy was not late, 0 to 1. None before two measurements."""
        if not self.at or self.since == self.at:
            return None
        end = parse_utc(self.at)
        start = max(parse_utc(self.since), end - PERIOD)
        late = sum(seconds for day, seconds in self.late_s.items() if day >= _day(start))
        return max(0.0, 1 - late / (end - start).total_seconds())


def rebuilt(windows: Iterable[tuple[str, str]], allowed: timedelta) -> Attainment:
    """From the change log: when each window was sealed, and the oldest commit in it (empty if unknown). Late is the
    time that the oldest change waited longer than ``allowed``."""
    attainment = Attainment()
    for sealed_at, oldest in windows:
        attainment = attainment.measured(oldest, allowed, sealed_at)
    return attainment


def meets(fraction: float | None, objective: str) -> bool | None:
    """Whether the fraction meets the ``objective`` of the YAML. None if one of them is unknown."""
    return None if fraction is None or not objective else fraction * 100 >= float(objective.removesuffix("%"))


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
