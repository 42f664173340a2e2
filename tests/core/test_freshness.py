"""The age of a copy, compared with what the definition allows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.freshness import Freshness, freshness, with_fresh_at
from airflow_cdc_provider.core.decisions.summaries import summarize
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import parse_utc, utc_text

NOW = "2026-05-01T12:00:00.000+00:00"
TEN_MINUTES = timedelta(minutes=10)


def row(state: TableState = TableState.REPLICATING, **known: str) -> TableRow:
    return TableRow("public.a", "public_a", state, **known)


@pytest.mark.parametrize(
    ("fresh_at", "lag_s", "late"),
    [
        ("2026-05-01T11:59:30.500+00:00", 29.5, False),
        ("2026-05-01T11:50:00+00:00", 600, False),
        ("2026-05-01T11:49:59Z", 601, True),
        ("2026-05-01T11:00:00", 3600, True),
        ("2026-05-01T12:00:05+00:00", 0, False),
    ],
)
def test_a_copy_is_late_when_it_is_older_than_the_definition_allows(fresh_at: str, lag_s: float, late: bool) -> None:
    assert freshness(row(fresh_at=fresh_at), TEN_MINUTES, NOW) == Freshness(lag_s, late)


@pytest.mark.parametrize("ahead_s", [-600.0, 0.0, 600.0])
def test_the_lag_counts_from_the_time_of_the_source_on_the_clock_of_the_state_store(ahead_s: float) -> None:
    at_source = utc_text(parse_utc(NOW) + timedelta(seconds=ahead_s - 90))
    one = replace(row(fresh_at=at_source), clock_ahead_s=ahead_s)
    assert freshness(one, TEN_MINUTES, NOW) == Freshness(90, False)
    assert summarize([one]).lag_s(NOW) == 90 and not summarize([one]).is_late(TEN_MINUTES, NOW)


HOUR = timedelta(hours=1)


@given(st.lists(st.sampled_from([-HOUR, timedelta(), HOUR]), max_size=8), st.lists(st.integers(1, 3600), min_size=8))
def test_the_lag_is_right_after_each_change_of_the_source_clock(sets: list[timedelta], seconds: list[int]) -> None:
    """Runs that each read all of the source, a second before they end."""
    one, end, ahead = row(), parse_utc(NOW), timedelta()
    for change, passed in zip(sets, seconds, strict=False):
        end, ahead = end + timedelta(seconds=passed), ahead + change
        at_source = utc_text(end + ahead - timedelta(seconds=1))
        one = with_fresh_at(one, at_source, ahead.total_seconds(), utc_text(end))
        assert freshness(one, TEN_MINUTES, utc_text(end)).lag_s == 1


def test_a_commit_by_a_clock_that_was_set_back_since_does_not_make_a_copy_fresher() -> None:
    before = replace(row(fresh_at="2026-05-01T11:30:00Z"), clock_ahead_s=0.0)
    assert with_fresh_at(before, "2026-05-01T11:50:00Z", -3600.0, NOW) == before
    assert with_fresh_at(before, "2026-05-01T11:20:00Z", 0.0, NOW) == before
    assert with_fresh_at(before, "2026-05-01T12:40:00Z", 3600.0, NOW).clock_ahead_s == 3600
    first = with_fresh_at(row(), "2026-05-01T12:40:00Z", 0.0, NOW)
    assert first.fresh_at and with_fresh_at(first, "2026-05-01T11:00:00Z", 0.0, NOW).fresh_at == "2026-05-01T11:00:00Z"


def test_a_copy_ages_while_it_is_paused_blocked_or_failing() -> None:
    for state in (TableState.PAUSED, TableState.BLOCKED, TableState.FAILING, TableState.RESYNCING):
        assert freshness(row(state, fresh_at="2026-05-01T11:00:00Z"), TEN_MINUTES, NOW) == Freshness(3600, True)


def test_a_table_without_copy_has_no_lag_and_is_late_when_it_waits_too_long() -> None:
    assert freshness(row(TableState.PENDING, since="2026-05-01T11:55:00Z"), TEN_MINUTES, NOW) == Freshness(None, False)
    assert freshness(row(TableState.PENDING, since="2026-05-01T10:00:00Z"), TEN_MINUTES, NOW) == Freshness(None, True)
    failing = row(TableState.FAILING, since="2026-05-01T11:59:00Z", failing_since="2026-05-01T10:00:00Z")
    assert freshness(failing, TEN_MINUTES, NOW).late
    assert freshness(row(TableState.PENDING), TEN_MINUTES, NOW) == Freshness(None, False)


def test_a_dropped_table_does_not_age() -> None:
    assert freshness(row(TableState.DROPPED, fresh_at="2020-01-01"), TEN_MINUTES, NOW) == Freshness(None, False)
