"""Limits of a copy: rows per second, splits at once; and how far it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.copy_progress import CopyProgress, Progress, format_progress
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotDefaults
from spark_jobs.copies.throttle import CREDIT_S, Throttle


class Clock:
    """Time passes only while the reader works or waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


PIECES = st.lists(st.tuples(st.integers(0, 500), st.floats(0, 3)), min_size=1, max_size=40)


@given(st.integers(1, 1000), PIECES)
def test_no_period_has_more_rows_than_its_rate_allows(rate: int, pieces: list[tuple[int, float]]) -> None:
    clock = Clock()
    throttle = Throttle(rate, clock, clock.pass_time)
    reads = list[tuple[float, int]]()
    for rows, work_s in pieces:
        clock.pass_time(work_s)
        reads.append((clock.now, rows))
        throttle.passed(rows)
    for first in range(len(reads)):
        for last in range(first, len(reads)):
            seconds = reads[last][0] - reads[first][0]
            rows = sum(rows for _, rows in reads[first:last])
            assert rows <= rate * (seconds + CREDIT_S) + 1e-6


def test_a_reader_with_a_limit_reads_at_its_rate_and_not_slower() -> None:
    clock = Clock()
    throttle = Throttle(100, clock, clock.pass_time)
    for _ in range(50):
        clock.pass_time(0.2)  # the read itself takes less than its 0.4 seconds
        throttle.passed(40)
    assert clock.now - 1000.0 == pytest.approx(20.0, abs=0.3)


def test_without_a_limit_a_reader_never_waits() -> None:
    clock = Clock()
    Throttle(None, clock, clock.pass_time).passed(10**9)
    assert clock.now == 1000.0


@pytest.mark.parametrize(
    ("parallel", "splits", "possible", "readers"),
    [(None, 9, 4, 4), (2, 9, 4, 2), (8, 9, 4, 4), (3, 1, 4, 1), (1, 0, 4, 1)],
)
def test_the_rate_of_a_copy_is_divided_among_its_readers(
    parallel: int | None, splits: int, possible: int, readers: int
) -> None:
    snapshot = Snapshot(parallel=parallel, max_rows_per_second=600)
    assert snapshot.readers(splits, possible) == readers
    assert snapshot.rows_per_second(readers) == 600 / readers
    assert Snapshot().rows_per_second(readers) is None


def test_limits_of_a_table_precede_those_of_the_replicator() -> None:
    defaults = SnapshotDefaults(max_rows_per_second=10, parallel=2)
    own = Snapshot(max_rows_per_second=5, priority=3).over(defaults)
    assert (own.max_rows_per_second, own.parallel, own.priority) == (5, 2, 3)


def test_the_time_left_is_estimated_from_the_rows_so_far() -> None:
    saved = CopyProgress("r1", "2026-01-01T00:00:00+00:00", 2.0, Progress(600, of=1000))
    assert saved.seconds_left == pytest.approx(4 / 3)
    assert str(saved) == "600 rows, 300 rows/s, 60% done, 1 s left"
    assert CopyProgress("r1", "", 2.0, Progress(600)).seconds_left is None
    assert format_progress(Progress(1200, of=1000), 2.0).endswith("100% done, 0 s left")
