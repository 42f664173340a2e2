"""Repeated and concurrent work as Airflow causes it, and kills at random moments, on a real Airflow.

The tests build on each other; the comparison at the end, with a writer at work, checks all of them. A backfill beside
the schedule is in ``tests/e2e``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from deltalake import DeltaTable

from tests.faults.killing import clear, kill_driver, kill_scheduler, kill_task, runs_task
from tests.scenario import Scenario

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

TABLES = """\
tables:
  - source: public.orders
    on_delete: soft
  - source: public.page_views
"""
MEMORY = "\nspark: {conf: {spark.driver.memory: 1g}}\n"


@pytest.fixture(scope="module")
def repeated(scenario: Callable[..., Scenario]) -> Scenario:
    return scenario("repeated", tables=TABLES, more=MEMORY)


@pytest.fixture(scope="module")
def random_moments(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture(scope="module")
def runs() -> Iterator[list[str]]:
    """The successful runs so far."""
    yield []


def test_a_wrong_password_is_reported_and_not_shown(repeated: Scenario) -> None:
    repeated.connect(password="not-the-password")
    run = repeated.start()
    assert repeated.finish(run)["run"] == "failed"
    log = repeated.failed_logs(run)
    assert "CON009" in log and "repeated_db" in log
    assert repeated.password not in log
    repeated.connect()


def test_after_a_scheduler_is_killed_during_a_first_copy_the_next_one_finishes_the_run(
    repeated: Scenario, random_moments: random.Random
) -> None:
    run = repeated.start()
    runs_task(repeated, [run], "snapshot")
    with kill_scheduler(repeated.airflow):
        assert repeated.finish(run)["run"] == "success", repeated.failed_logs(run)


def test_two_concurrent_runs_with_a_killed_driver_a_killed_task_and_a_cleared_task_apply_each_change_once(
    repeated: Scenario, random_moments: random.Random, runs: list[str]
) -> None:
    repeated.load.run(30)
    repeated.load.truncate()
    both = [repeated.start(), repeated.start()]
    first = runs_task(repeated, both, "extract")
    kill_driver(repeated, first, "extract", random_moments.uniform(0, 4))
    kill_task(repeated, first, "stage", random_moments.uniform(0, 4))
    runs_task(repeated, [first], "merge")
    clear(repeated, first, "merge")
    for run in both:
        assert repeated.finish(run)["run"] == "success", repeated.failed_logs(run)
    runs.append(first)


def test_a_task_that_is_cleared_after_its_success_commits_nothing(repeated: Scenario, runs: list[str]) -> None:
    tables = [DeltaTable(repeated.lake / name) for name in ("orders", "page_views")]
    before = [table.version() for table in tables]
    clear(repeated, runs[-1], "merge")
    assert repeated.finish(runs[-1])["run"] == "success", repeated.failed_logs(runs[-1])
    for table in tables:
        table.update_incremental()
    assert [table.version() for table in tables] == before


def test_source_and_target_are_identical_after_all_faults(repeated: Scenario) -> None:
    with repeated.load:
        repeated.verify()
