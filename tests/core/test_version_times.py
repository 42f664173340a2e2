"""When versions that have ended must be read: changes may have earlier commit times."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.histories.version_times import may_go_back, versions_until

CONTROL = ControlRecord("r", "t", "log", "me", "a", 1, 1, "", State(TableState.REPLICATING, ""))
NOW = "2026-01-01T12:00:00+00:00"


def window(least: str | None, greatest: str | None) -> Manifest:
    times = [time and f"2026-01-01T{time}:00+00:00" for time in (least, greatest)]
    return Manifest("log", 2, 1, {}, {}, "", "a", "", {}, commit_ts_min=times[0], commit_ts_max=times[1])


UNTIL = replace(CONTROL, versions_until="2026-01-01T11:00:00+00:00")


def test_later_changes_need_no_ended_version() -> None:
    assert not may_go_back(UNTIL, [window("11:00", "11:30")], NOW)
    assert may_go_back(UNTIL, [window("11:30", "11:40"), window("10:59", "11:30")], NOW), "the clock was set back"


def test_what_is_not_known_may_be_earlier() -> None:
    assert may_go_back(CONTROL, [window("11:00", "11:30")], NOW)
    assert may_go_back(UNTIL, [window(None, None)], "2026-01-01T10:00:00+00:00"), "times of the batch itself"
    waiting = replace(UNTIL, carry=CarryOver(counts={Carried.QUARANTINED: 1}))
    assert may_go_back(waiting, [window("11:30", "11:40")], NOW)


def test_the_latest_time_never_goes_back() -> None:
    assert versions_until(UNTIL, [window("09:00", "09:30")], "2026-01-01T09:00:00+00:00") == UNTIL.versions_until
    assert versions_until(UNTIL, [window("09:00", "12:30")], NOW) == "2026-01-01T12:30:00+00:00"
