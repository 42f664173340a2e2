"""SIGKILL in every step of a run, to the driver and to the task. The comparison at the end judges them all."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.faults.killing import kill_driver, kill_task
from tests.scenario import Scenario

pytestmark = [pytest.mark.jvm, pytest.mark.server]

STEPS = ("extract", "stage", "merge")


@pytest.fixture(scope="module")
def battered(scenario: Callable[..., Scenario]) -> Scenario:
    return scenario("battered", more="\nspark: {conf: {spark.driver.memory: 1g}}\n")


@pytest.fixture(scope="module")
def chance() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_a_killed_driver_of_a_first_copy_leaves_no_half_copy(battered: Scenario, chance: random.Random) -> None:
    run = battered.start()
    kill_driver(battered, run, "snapshot", chance.uniform(0, 6))
    states = battered.finish(run)
    assert states["run"] == "success", battered.story(run)


def test_drivers_killed_in_every_step_are_started_again(battered: Scenario, chance: random.Random) -> None:
    battered.load.run(30)
    battered.load.truncate()
    run = battered.start()
    for step in STEPS:
        kill_driver(battered, run, step, chance.uniform(0, 4))
    states = battered.finish(run)
    assert states["run"] == "success", battered.story(run)


def test_tasks_killed_beside_living_drivers_leave_both_sides_identical(
    battered: Scenario, chance: random.Random
) -> None:
    battered.load.run(30)
    run = battered.start()
    for step in STEPS:
        kill_task(battered, run, step, chance.uniform(0, 4))
    states = battered.finish(run)
    assert states["run"] == "success", battered.story(run)
    with battered.load:
        battered.verify()
