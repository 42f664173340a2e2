"""Whether changes may have earlier commit times than versions that have ended: the clock of the source was set back, or
records have waited. Only then must ended versions be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord


def may_go_back(control: ControlRecord, windows: Sequence[Manifest], now: str) -> bool:
    """``windows``: of the batch. ``now``: the time of changes without one. All times are ISO 8601."""
    if not control.versions_until or control.carry.waiting:
        return True
    earliest = min(_time(window.commit_ts_min or now) for window in windows) if windows else _time(now)
    return min(earliest, _time(now)) < _time(control.versions_until)


def versions_until(control: ControlRecord, windows: Sequence[Manifest], now: str) -> str:
    """The latest time of a version after the batch."""
    times = [control.versions_until, *(window.commit_ts_max or "" for window in windows), now]
    return max(filter(None, times), key=_time)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
