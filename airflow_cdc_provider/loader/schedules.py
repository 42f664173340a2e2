"""How often a cron expression starts a run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from croniter import croniter

MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
RARE = ("@monthly", "@quarterly", "@yearly")


def runs_a_day(schedule: str | None) -> int:
    """On the busiest day of a week; at least 1 if there is a schedule."""
    if schedule is None:
        return 0
    if schedule in RARE:
        return 1
    times = croniter(schedule, MONDAY - timedelta(seconds=1)).all_next(datetime)
    days = Counter(time.date() for time in takewhile(lambda time: time < MONDAY + timedelta(days=7), times))
    return max(days.values(), default=1)
