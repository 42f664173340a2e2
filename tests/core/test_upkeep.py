"""When tables need upkeep: from their statistics to the chores that are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_cdc_provider.core.table.upkeep import WINDOWS, is_due
from airflow_cdc_provider.targets.delta import maintenance as delta
from airflow_cdc_provider.targets.iceberg import maintenance as iceberg

GB = 1 << 30
ICEBERG = iceberg.TableStatistics(data_files=20, delete_files=10, rows=1000, deleted_rows=50, bytes=GB, old_snapshots=5)
DELTA = delta.TableStatistics(files=20, bytes=GB, rows=1000, marked_rows=50, unvacuumed=timedelta(0), commits=3)
WEEK = timedelta(days=7)


@pytest.mark.parametrize(
    ("change", "chores"),
    [
        ({}, ()),
        ({"data_files": 60}, ("compact",)),
        ({"data_files": 60, "bytes": 64 * GB}, ()),
        ({"delete_files": 41}, ("compact",)),
        ({"delete_files": 43, "data_files": 25}, ("compact",)),
        ({"deleted_rows": 101}, ("compact",)),
        ({"old_snapshots": 51}, ("expire",)),
        ({"old_snapshots": 51, "deleted_rows": 101}, ("compact", "expire")),
        ({"rows": 0, "deleted_rows": 0, "data_files": 0, "bytes": 0}, ()),
    ],
)
def test_an_iceberg_table_gets_the_chores_that_are_due(change: dict[str, int], chores: tuple[str, ...]) -> None:
    assert iceberg.due_tasks(replace(ICEBERG, **change)) == chores


@pytest.mark.parametrize(
    ("change", "chores"),
    [
        ({}, ()),
        ({"files": 60}, ("compact",)),
        ({"files": 60, "bytes": 64 * GB}, ()),
        ({"marked_rows": 101}, ("purge",)),
        ({"unvacuumed": timedelta(days=8)}, ()),
        ({"unvacuumed": timedelta(days=8, hours=1)}, ("vacuum",)),
        ({"log_retention": timedelta(days=6)}, ("retain log",)),
        ({"marked_rows": 101, "files": 60, "unvacuumed": timedelta(days=9)}, ("purge", "compact", "vacuum")),
    ],
)
def test_a_delta_table_gets_the_chores_that_are_due(change: dict[str, object], chores: tuple[str, ...]) -> None:
    assert delta.due_tasks(replace(DELTA, **change), WEEK) == chores  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "retention"),
    [
        (None, timedelta(days=30)),
        ("interval 90 days", timedelta(days=90)),
        ("interval 1 week", timedelta(days=7)),
        ("2161 hours", timedelta(hours=2161)),
        ("INTERVAL 5 DAYS", timedelta(days=5)),
        ("interval 3 months", timedelta.max),
        ("interval 1 day 2 hours", timedelta.max),
    ],
)
def test_the_commits_of_a_delta_table_stay_as_long_as_its_setting_says(
    setting: str | None, retention: timedelta
) -> None:
    assert delta.log_retention({} if setting is None else {delta.LOG_RETENTION: setting}) == retention


def test_the_statistics_of_an_iceberg_table_are_those_of_its_current_snapshot() -> None:
    summary = {"total-data-files": "3", "total-delete-files": "2", "total-records": "10", "total-position-deletes": "4"}
    figures = iceberg.table_statistics(summary | {"total-files-size": "99"}, old_snapshots=7)
    assert figures == iceberg.TableStatistics(3, 2, 10, 4, 99, 7)


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
def test_each_table_gets_its_upkeep_once_in_ten_windows_however_often_it_changes(step: int) -> None:
    for table in (f"public.t{number}" for number in range(20)):
        merges = range(0, 1_000, step)
        due = [after for before, after in pairwise(merges) if is_due(table, before, after)]
        assert all(later - earlier < WINDOWS + step for earlier, later in pairwise((0, *due)))
        assert len(due) <= 1_000 // WINDOWS


def test_a_table_that_changes_less_than_once_in_ten_windows_gets_its_upkeep_at_each_merge() -> None:
    assert all(is_due(f"public.t{number}", 30, 40 + number) for number in range(20))


def test_the_tables_of_a_replicator_take_different_turns() -> None:
    turns = {next(n for n in range(1, 20) if is_due(f"public.t{number}", n - 1, n)) for number in range(100)}
    assert turns == set(range(1, WINDOWS + 1))


def test_a_repair_that_moves_no_cursor_needs_no_upkeep() -> None:
    assert not any(is_due("public.t", window, window) for window in range(100))


def test_a_vacuum_that_is_refused_keeps_no_other_task_from_being_done() -> None:
    everything = replace(DELTA, marked_rows=DELTA.rows, files=10_000, commits=10_000, unvacuumed=10 * WEEK)
    assert [str(task) for task in delta.due_tasks(everything, WEEK)] == ["purge", "compact", "checkpoint", "vacuum"]
