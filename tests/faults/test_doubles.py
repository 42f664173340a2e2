"""Airflow's own ways to do a thing twice, and kills at random moments, on a real Airflow.

The tests build on each other; the comparison at the end, beside a writer, judges them all. A backfill beside the
schedule is in ``tests/e2e``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from deltalake import DeltaTable

from tests.faults.killing import clear, kill_driver, kill_scheduler, kill_task, runs_task
from tests.scenario import Scenario

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLES = """\
tables:
  - source: public.orders
    on_delete: soft
  - source: public.page_views
"""
MEMORY = "\nspark: {conf: {spark.driver.memory: 1g}}\n"


@pytest.fixture(scope="module")
def doubled(scenario: Callable[..., Scenario]) -> Scenario:
    return scenario("doubled", tables=TABLES, more=MEMORY)


@pytest.fixture(scope="module")
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture(scope="module")
def runs() -> Iterator[list[str]]:
    """Those that have gone well so far."""
    yield []


def test_a_wrong_password_is_named_as_such_and_not_shown(doubled: Scenario) -> None:
    doubled.connect(password="not-the-password")
    run = doubled.start()
    assert doubled.finish(run)["run"] == "failed"
    story = doubled.story(run)
    assert "CON009" in story and "doubled_db" in story
    assert doubled.password not in story
    doubled.connect()


def test_a_scheduler_killed_in_a_first_copy_leaves_the_run_to_the_next_one(
    doubled: Scenario, chance: random.Random
) -> None:
    run = doubled.start()
    runs_task(doubled, [run], "snapshot")
    with kill_scheduler(doubled.airflow):
        assert doubled.finish(run)["run"] == "success", doubled.story(run)


def test_two_runs_at_once_with_a_killed_driver_a_killed_task_and_a_cleared_one_are_as_one(
    doubled: Scenario, chance: random.Random, runs: list[str]
) -> None:
    doubled.load.run(30)
    doubled.load.truncate()
    both = [doubled.start(), doubled.start()]
    first = runs_task(doubled, both, "extract")
    kill_driver(doubled, first, "extract", chance.uniform(0, 4))
    kill_task(doubled, first, "stage", chance.uniform(0, 4))
    runs_task(doubled, [first], "merge")
    clear(doubled, first, "merge")
    for run in both:
        assert doubled.finish(run)["run"] == "success", doubled.story(run)
    runs.append(first)


def test_a_task_cleared_after_it_succeeded_commits_nothing_more(doubled: Scenario, runs: list[str]) -> None:
    tables = [DeltaTable(doubled.lake / name) for name in ("orders", "page_views")]
    before = [table.version() for table in tables]
    clear(doubled, runs[-1], "merge")
    assert doubled.finish(runs[-1])["run"] == "success", doubled.story(runs[-1])
    for table in tables:
        table.update_incremental()
    assert [table.version() for table in tables] == before


def test_after_all_this_both_sides_are_identical(doubled: Scenario) -> None:
    with doubled.load:
        doubled.verify()
