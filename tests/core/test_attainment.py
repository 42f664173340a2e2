"""The part of the time in which a copy was not late."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.attainment import Attainment, meets, rebuilt

START = datetime.fromisoformat("2026-06-01T00:00:00+00:00")
ALLOWED = timedelta(minutes=30)


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def late_s(attainment: Attainment) -> float:
    return sum(attainment.late_s.values())


def test_a_copy_is_late_from_the_time_that_freshness_allows() -> None:
    first = Attainment().measured("", ALLOWED, at(0))
    assert first.fraction() is None
    fresh = first.measured(at(0), ALLOWED, at(20))
    assert fresh.fraction() == 1
    late = fresh.measured(at(0), ALLOWED, at(60))
    assert late.late_s == {"2026-06-01": 30 * 60} and late.fraction() == 0.5
    caught_up = late.measured(at(60), ALLOWED, at(80))
    assert caught_up.late_s == late.late_s and caught_up.fraction() == pytest.approx(50 / 80)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=8), st.integers(0, 3000))
def test_measuring_more_often_changes_nothing(steps: list[int], aging: int) -> None:
    often = whole = Attainment().measured("", ALLOWED, at(0))
    end = 0
    for step in steps:
        end += step
        often = often.measured(at(-aging), ALLOWED, at(end))
    whole = whole.measured(at(-aging), ALLOWED, at(end))
    assert often.late_s == pytest.approx(whole.late_s) and often.fraction() == pytest.approx(whole.fraction())
    assert late_s(whole) == pytest.approx(60 * max(0, end - max(0, 30 - aging)))


@given(st.lists(st.tuples(st.integers(1, 20_000), st.integers(0, 5_000)), min_size=1, max_size=20))
def test_the_attainment_is_a_fraction_of_at_most_30_days(runs: list[tuple[int, int]]) -> None:
    now, attainment = 0, Attainment().measured("", ALLOWED, at(0))
    for step, age in runs:
        attainment = attainment.measured(at(now - age), ALLOWED, at(now + step))
        now += step
    fraction = attainment.fraction()
    assert fraction is not None and 0 <= fraction <= 1
    assert len(attainment.late_s) <= 31 + max(step for step, _ in runs) // 1440


def test_an_earlier_month_does_not_count() -> None:
    long_ago = Attainment().measured("", ALLOWED, at(0)).measured(at(0), ALLOWED, at(1000))
    later = long_ago.measured(at(45 * 1440), ALLOWED, at(45 * 1440))
    assert long_ago.late_s and not later.late_s and later.fraction() == 1


def test_the_change_log_shows_how_long_changes_waited() -> None:
    windows = [(at(0), ""), (at(10), at(9)), (at(100), at(40)), (at(600), "")]
    assert rebuilt(windows, ALLOWED).late_s == {"2026-06-01": 30 * 60}


@pytest.mark.parametrize(
    ("fraction", "objective", "met"),
    [(0.995, "99.5%", True), (0.99, "99.5%", False), (None, "99%", None), (1.0, "", None)],
)
def test_an_objective_is_met_or_missed(fraction: float | None, objective: str, met: bool | None) -> None:
    assert meets(fraction, objective) is met
