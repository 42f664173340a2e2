"""Whether changes may have earlier commit times than versions that have ended: the clock of the source was set back, or
records have waited. Only then must ended versions be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.core.table.control_record import ControlRecord


@dataclass(frozen=True)
class CommitTimes:
    """Those of a batch. ``some_unknown``: some changes may have none, and get the time of the batch."""

    least: datetime | None = None
    greatest: datetime | None = None
    some_unknown: bool = False

    def with_piece(self, statistics: Any) -> CommitTimes:
        """``statistics``: of the column in a piece of a Parquet file; None if there are none."""
        if statistics is None or not statistics.has_null_count:
            return CommitTimes(self.least, self.greatest, True)
        nothing = statistics.null_count and not statistics.num_values
        if nothing or not statistics.has_min_max:
            return CommitTimes(self.least, self.greatest, True)
        times = [one.replace(tzinfo=one.tzinfo or UTC) for one in (statistics.min, statistics.max)]
        return CommitTimes(
            min(filter(None, (self.least, *times))),
            max(filter(None, (self.greatest, *times))),
            self.some_unknown or statistics.null_count > 0,
        )


def may_go_back(control: ControlRecord, times: CommitTimes, now: str) -> bool:
    """``now``: the time of changes without one. It is ISO 8601."""
    if not control.versions_until or control.carry.waiting:
        return True
    return any(time < _time(control.versions_until) for time in _all(times.least, times, now))


def versions_until(control: ControlRecord, times: CommitTimes, now: str) -> str:
    """The latest time of a version after the batch."""
    before = [_time(control.versions_until)] if control.versions_until else []
    latest = max([*before, *_all(times.greatest, times, now)], default=None)
    return latest.isoformat() if latest is not None else ""


def _all(known: datetime | None, times: CommitTimes, now: str) -> list[datetime]:
    return [*([known] if known is not None else []), *([_time(now)] if times.some_unknown else [])]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
