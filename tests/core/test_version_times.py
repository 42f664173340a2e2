"""When versions that have ended must be read: changes may have earlier commit times."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.histories.version_times import CommitTimes, may_go_back, versions_until

CONTROL = ControlRecord("r", "t", "log", "me", "a", 1, 1, "", State(TableState.REPLICATING, ""))
NOW = "2026-01-01T12:00:00+00:00"
UNTIL = replace(CONTROL, versions_until="2026-01-01T11:00:00+00:00")


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{time}:00+00:00")


def times(least: str, greatest: str, some_unknown: bool = False) -> CommitTimes:
    return CommitTimes(at(least), at(greatest), some_unknown)


UNKNOWN = CommitTimes(some_unknown=True)


def test_later_changes_need_no_ended_version() -> None:
    assert not may_go_back(UNTIL, times("11:00", "11:30"), NOW)
    assert may_go_back(UNTIL, times("10:59", "11:40"), NOW), "the clock was set back"


def test_what_is_not_known_may_be_earlier() -> None:
    assert may_go_back(CONTROL, times("11:00", "11:30"), NOW)
    assert may_go_back(UNTIL, UNKNOWN, "2026-01-01T10:00:00+00:00"), "times of the batch itself"
    assert may_go_back(UNTIL, times("11:00", "11:30", True), "2026-01-01T10:00:00+00:00")
    waiting = replace(UNTIL, carry=CarryOver(counts={Carried.QUARANTINED: 1}))
    assert may_go_back(waiting, times("11:30", "11:40"), NOW)


def test_the_latest_time_never_goes_back() -> None:
    assert versions_until(UNTIL, times("09:00", "09:30"), NOW) == UNTIL.versions_until
    assert versions_until(UNTIL, times("09:00", "12:30"), NOW) == "2026-01-01T12:30:00+00:00"
    assert versions_until(UNTIL, UNKNOWN, NOW) == NOW


def test_the_time_of_a_batch_counts_only_where_a_change_has_none() -> None:
    """Changes that are committed while a batch is folded are later than its own changes."""
    until = versions_until(UNTIL, times("11:00", "11:30"), NOW)
    assert until == "2026-01-01T11:30:00+00:00"
    assert not may_go_back(replace(UNTIL, versions_until=until), times("11:31", "11:40"), NOW)
    assert versions_until(UNTIL, times("11:00", "11:30", True), NOW) == NOW


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["11:30", "11:00"], times("11:00", "11:30")),
        (["11:30", None], times("11:30", "11:30", True)),
        ([None, None], UNKNOWN),
    ],
)
def test_the_times_of_a_file_are_known_from_its_footer(values: Sequence[str | None], found: CommitTimes) -> None:
    column = pa.array([time and at(time) for time in values], pa.timestamp("us", tz="UTC"))
    content = io.BytesIO()
    pq.write_table(pa.table({"commit_ts": column}), content)
    group = pq.ParquetFile(content).metadata.row_group(0)
    assert CommitTimes().with_piece(group.column(0).statistics) == found
    assert CommitTimes().with_piece(None) == UNKNOWN
