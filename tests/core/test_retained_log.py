"""When a source drops what was not read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.retained_log import RATE_OVER, RetainedLog, SourceRetention, plain_retention
from airflow_cdc_provider.core.serde import from_plain, to_plain

START = datetime(2026, 11, 27, 12, tzinfo=UTC)
GIB = 1 << 30


def at(hours: float) -> str:
    return (START + timedelta(hours=hours)).isoformat(timespec="milliseconds")


def wal(end: int, free: int | None = GIB) -> RetainedLog:
    return RetainedLog(bytes=GIB, free_bytes=free, end=end)


def test_a_log_that_is_kept_for_a_time_runs_out_that_long_after_it_was_read() -> None:
    one = SourceRetention().measured(RetainedLog(keeps=timedelta(days=3)), at(0), at(1))
    assert one.runs_out_at == START + timedelta(days=3)
    unread = one.measured(one.log, "", at(20))
    assert unread.runs_out_at == one.runs_out_at, "a run that has not read it changes nothing"
    assert one.measured(one.log, at(20), at(20)).runs_out_at == START + timedelta(days=3, hours=20)


def test_a_log_with_a_limit_in_bytes_runs_out_at_the_rate_of_its_growth() -> None:
    first = SourceRetention().measured(wal(0), at(0), at(0))
    assert (first.bytes_per_s, first.runs_out_at) == (None, None)
    second = first.measured(wal(GIB), at(1), at(1))
    assert second.bytes_per_s == GIB / 3600
    assert second.runs_out_at == START + timedelta(hours=2)
    assert second.used == 0.5


def test_a_log_that_does_not_grow_or_has_no_limit_never_runs_out() -> None:
    still = SourceRetention().measured(wal(7), at(0), at(0)).measured(wal(7), at(1), at(1))
    assert (still.bytes_per_s, still.runs_out_at) == (0, None)
    free = SourceRetention().measured(wal(0, None), at(0), at(0)).measured(wal(9, None), at(1), at(1))
    assert (free.runs_out_at, free.used) == (None, None)


def test_the_earlier_of_two_limits_counts() -> None:
    both = RetainedLog(GIB, None, GIB, GIB, timedelta(minutes=30))
    one = SourceRetention().measured(wal(0), at(0), at(0)).measured(both, at(1), at(1))
    assert one.runs_out_at == START + timedelta(hours=1, minutes=30)


def test_a_log_that_starts_again_has_no_rate_yet() -> None:
    one = SourceRetention().measured(wal(900), at(0), at(0)).measured(wal(5), at(1), at(1))
    assert one.bytes_per_s is None


@given(st.lists(st.integers(1, 60 * 24), min_size=2, max_size=60), st.integers(1, 1000))
def test_the_rate_is_that_of_the_last_day_at_most_and_two_samples_are_kept(minutes: list[int], rate: int) -> None:
    one, now = SourceRetention(), 0
    for pause in minutes:
        now += pause
        one = one.measured(wal(rate * now * 60), at(now / 60), at(now / 60))
        assert len(one.ends) <= 2
    assert one.bytes_per_s is None or abs(one.bytes_per_s - rate) < 0.01 * rate
    longest = max(minutes) * timedelta(minutes=1)
    covered = datetime.fromisoformat(one.at) - datetime.fromisoformat(one.ends[0].at)
    assert covered < 2 * (RATE_OVER + longest)


def test_it_is_kept_in_the_state_store_and_shown_as_json() -> None:
    log = RetainedLog(GIB, START, GIB, 7, timedelta(days=3))
    one = SourceRetention().measured(log, at(0), at(0))
    assert from_plain(SourceRetention, to_plain(one)) == one
    assert plain_retention(one) == {
        "bytes": GIB,
        "free_bytes": GIB,
        "used": 0.5,
        "bytes_per_s": None,
        "keeps_s": 259200,
        "since": "2026-11-27T12:00:00+00:00",
        "read_at": at(0),
        "measured_at": at(0),
        "runs_out_at": "2026-11-30T12:00:00+00:00",
    }
