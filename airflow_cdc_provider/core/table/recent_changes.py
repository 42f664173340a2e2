"""The changes that a copy got in the last day, by half hours. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.times import parse_utc

HALF_HOUR = timedelta(minutes=30)
HALF_HOURS = 48

RecentChanges = Mapping[str, int]
"""Start of a half hour in UTC, as ``2026-11-27T14:30`` → the number of changes; without half hours that have none."""


def with_changes(recent: RecentChanges, changes: int, at: str) -> dict[str, int]:
    """With ``changes`` applied at ``at`` (UTC in ISO 8601 format), without what is older than a day."""
    first, current = _starts(at)[0], _text(_half_hour(at))
    counts = Counter({start: count for start, count in recent.items() if start >= first})
    if changes:
        counts[current] += changes
    return dict(counts)


def summed(several: Iterable[RecentChanges]) -> dict[str, int]:
    counts = Counter[str]()
    for recent in several:
        counts.update(recent)
    return dict(counts)


def series(recent: RecentChanges, now: str) -> list[int]:
    """48 numbers, the current half hour last."""
    return [recent.get(start, 0) for start in _starts(now)]


def _starts(now: str) -> list[str]:
    last = _half_hour(now)
    return [_text(last - HALF_HOUR * ago) for ago in reversed(range(HALF_HOURS))]


def _half_hour(at: str) -> datetime:
    moment = parse_utc(at).astimezone(UTC)
    return moment.replace(minute=moment.minute // 30 * 30, second=0, microsecond=0)


def _text(start: datetime) -> str:
    return start.strftime("%Y-%m-%dT%H:%M")
