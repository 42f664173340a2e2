"""The changes of the last day, by half hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.recent_changes import HALF_HOURS, series, summed, with_changes

NOON = "2026-11-27T12:00:00.000+00:00"


def at(minutes: int) -> str:
    return (datetime(2026, 11, 27, 12, tzinfo=UTC) + timedelta(minutes=minutes)).isoformat()


def test_changes_of_one_half_hour_add_up_and_the_current_one_is_last() -> None:
    recent = with_changes(with_changes(with_changes({}, 3, at(0)), 4, at(29)), 5, at(30))
    assert recent == {"2026-11-27T12:00": 7, "2026-11-27T12:30": 5}
    assert series(recent, at(45))[-3:] == [0, 7, 5]


def test_the_oldest_half_hour_of_the_day_is_kept_and_the_one_before_it_is_not() -> None:
    recent = with_changes(with_changes({}, 2, at(-30)), 3, at(0))
    kept = with_changes(recent, 1, at((HALF_HOURS - 1) * 30))
    assert kept == {"2026-11-27T12:00": 3, "2026-11-28T11:30": 1} and series(kept, at((HALF_HOURS - 1) * 30))[0] == 3


def test_a_time_of_another_zone_is_the_same_time() -> None:
    assert with_changes({}, 1, "2026-11-27T13:10:00+01:00") == {"2026-11-27T12:00": 1}


def test_runs_without_changes_take_no_space() -> None:
    assert with_changes({}, 0, NOON) == {}


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 9))))
def test_the_series_has_every_change_of_the_last_day_and_nothing_else(runs: list[tuple[int, int]]) -> None:
    recent: dict[str, int] = {}
    for minutes, changes in sorted(runs):
        recent = with_changes(recent, changes, at(minutes))
    now = max((minutes for minutes, _ in runs), default=0)
    first = now // 30 * 30 - (HALF_HOURS - 1) * 30
    assert sum(series(recent, at(now))) == sum(changes for minutes, changes in runs if minutes >= first)
    assert len(recent) <= HALF_HOURS


def test_tables_are_summed() -> None:
    assert summed([{"a": 1, "b": 2}, {"b": 3}]) == {"a": 1, "b": 5}
