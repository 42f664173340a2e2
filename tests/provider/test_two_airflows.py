"""Two Airflows with the same YAML, connections and cron: their runs have the same ids, and the copies belong to the
state store of one of them. And the folders of runs from before each state store had its own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log.change_log import STEPS, runs_folder
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.state.store import StateStore
from tests.provider.run_harness import RunHarness

A = "public.a"


@pytest.fixture
def first(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("s0").problems == ()
    return harness


@pytest.fixture
def second(first: RunHarness) -> RunHarness:
    harness = RunHarness(first.folder)
    harness.state = StateStore(f"sqlite:///{first.folder}/other.db")
    return harness


def test_the_run_of_a_second_airflow_stops_and_leaves_that_of_the_first_alone(
    first: RunHarness, second: RunHarness
) -> None:
    first.source.change(A)
    decision = first.open("s1")
    stop = second.open("s1").stop
    assert stop is not None and stop.code == "STA007"
    assert first.replicator.run("s1").plan() == decision.plan
    first.spark(decision)
    assert next(problem.code for problem in second.close("s1").problems) == "STA007"
    assert first.close("s1").problems == ()
    assert first.control(A).window == 2


def test_a_run_of_a_second_airflow_carries_nothing_out(first: RunHarness, second: RunHarness) -> None:
    paused = second.request(CommandKind.PAUSE, A)
    before = first.control(A)
    assert second.open("s1").stop is not None
    assert first.control(A) == before and before.state.name is TableState.REPLICATING
    assert [one.id for one in second.state.pending("shop")] == [paused.id]


def as_before_an_upgrade(harness: RunHarness, run_id: str) -> Path:
    """The run has the folder that it had before each state store had its own. Returns it."""
    staging = harness.folder / "staging/shop"
    former = staging / STEPS / run_id
    shutil.move(staging / runs_folder(harness.state.owner()) / run_id, former)
    return former


def test_a_run_that_began_before_an_upgrade_ends_in_its_folder(first: RunHarness, second: RunHarness) -> None:
    first.source.change(A)
    decision = first.open("s1")
    former = as_before_an_upgrade(first, "s1")
    with pytest.raises(StagingInvalid):
        second.replicator.run("s1").plan()
    first.spark(decision)
    assert first.close("s1").problems == () and first.control(A).window == 2
    assert not (first.folder / "staging/shop" / runs_folder(first.state.owner()) / "s1").exists()
    assert first.open("s1").stop is None
    assert not (former / "decision.json").exists(), "the run was opened again, in its own folder"
    assert first.close("s1").problems == ()


def test_runs_from_before_an_upgrade_are_removed_when_they_are_old(first: RunHarness) -> None:
    former = as_before_an_upgrade(first, "s0")
    first.definition = replace(first.definition, staging=replace(first.definition.staging, retain=timedelta(0)))
    assert first.run("s1").problems == ()
    assert not former.exists()
