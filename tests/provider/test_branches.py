"""The edges and trigger rules of the plan in the scheduler loop of Airflow, with tasks that do what the conf of the run
specifies: follow branches, skip, or fail."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.provider.branches import skeleton

# A library of Airflow's API server warns about another one.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")

ALL = {
    "open_window", "snapshot", "extract", "stage", "merge", "find_holes", "reconcile.pause_stream", "reconcile.resync",
    "reconcile.replay", "reconcile.resume_stream", "verify", "close_window", "emit_asset_events",
}  # fmt: skip
CLOSE, PAUSE, EMIT = "close_window", "reconcile.pause_stream", "emit_asset_events"
RECONCILE = {PAUSE, "reconcile.resync", "reconcile.replay", "reconcile.resume_stream"}
STREAM = {"extract", "stage", "merge", "find_holes"}


@pytest.fixture(scope="module")
def run_dag(metadata_database: None) -> Iterator[Callable[..., dict[str, set[str]]]]:
    """Runs the DAG once and returns the tasks by their state."""
    file = Path(os.environ["AIRFLOW_HOME"], "dags", "branches.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text("from tests.provider.branches import skeleton\n\ndag = skeleton()  # an Airflow DAG\n")
    dag = skeleton()

    def run(**conf: Any) -> dict[str, set[str]]:
        outcomes = {key.replace("__", "."): what for key, what in conf.items()}
        not_scripted = rf"(?!({'|'.join(map(re.escape, outcomes))})$).*"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", lambda seconds: None)  # its loop waits a second per skipped generation
            done = dag.test(
                run_conf=outcomes, mark_success_pattern=not_scripted
            )  # tasks without an outcome are not run
        states: dict[str, set[str]] = {}
        for ti in done.get_task_instances():
            states.setdefault(str(ti.state), set()).add(ti.task_id)
        return states

    yield run
    file.unlink()


def succeeded(states: dict[str, set[str]]) -> set[str]:
    assert set().union(*states.values()) == ALL
    assert set(states) <= {"success", "skipped"}
    return states["success"]


RunDag = Callable[..., dict[str, set[str]]]


def test_a_run_without_new_changes_runs_only_open_window_and_close_window(run_dag: RunDag) -> None:
    assert succeeded(run_dag(open_window=[CLOSE])) == {"open_window", CLOSE}


def test_a_first_copy_runs_alone(run_dag: RunDag) -> None:
    assert succeeded(run_dag(open_window=["snapshot", CLOSE])) == {"open_window", "snapshot", CLOSE}


def test_a_normal_run_applies_the_stream_and_finds_no_holes(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", CLOSE], find_holes=[CLOSE])
    assert succeeded(states) == {"open_window", *STREAM, CLOSE}


def test_copy_and_stream_run_side_by_side(run_dag: RunDag) -> None:
    states = run_dag(open_window=["snapshot", "extract", CLOSE], find_holes=[CLOSE])
    assert succeeded(states) == {"open_window", "snapshot", *STREAM, CLOSE}


def test_stage_runs_without_extract_when_the_log_is_ahead(run_dag: RunDag) -> None:
    states = run_dag(open_window=["stage", CLOSE], find_holes=[CLOSE])
    assert succeeded(states) == {"open_window", "stage", "merge", "find_holes", CLOSE}


def test_stage_runs_after_an_extract_that_skipped_itself(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", CLOSE], extract="skip", find_holes=[CLOSE])
    assert succeeded(states) == {"open_window", "stage", "merge", "find_holes", CLOSE}


def test_holes_are_searched_although_there_is_nothing_to_merge(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", CLOSE], merge="skip", find_holes=[CLOSE])
    assert succeeded(states) == {"open_window", "extract", "stage", "find_holes", CLOSE}


def test_a_hole_leads_into_reconcile(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", CLOSE], find_holes=[PAUSE])
    assert succeeded(states) == {"open_window", *STREAM, *RECONCILE, CLOSE}


def test_reconcile_can_follow_open_window_directly(run_dag: RunDag) -> None:
    assert succeeded(run_dag(open_window=[PAUSE, CLOSE])) == {"open_window", *RECONCILE, CLOSE}


def test_reconcile_and_stream_in_one_run(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", PAUSE, CLOSE], find_holes=[PAUSE])
    assert succeeded(states) == {"open_window", *STREAM, *RECONCILE, CLOSE}


def test_pause_stream_that_skips_itself_takes_the_group_with_it(run_dag: RunDag) -> None:
    states = run_dag(open_window=["extract", CLOSE], stage="skip", reconcile__pause_stream="skip")
    assert succeeded(states) == {"open_window", "extract", CLOSE}


def test_verify_runs_alone(run_dag: RunDag) -> None:
    assert succeeded(run_dag(open_window=["verify", CLOSE])) == {"open_window", "verify", CLOSE}


@pytest.mark.parametrize(
    ("failing", "follow", "stopped"),
    [
        ("open_window", [], ALL - {"open_window", CLOSE, EMIT}),
        ("snapshot", ["snapshot", CLOSE], set()),
        ("extract", ["extract", CLOSE], {"stage", "merge", "find_holes", *RECONCILE}),
        ("merge", ["extract", CLOSE], {"find_holes", *RECONCILE}),
        ("reconcile.resync", [PAUSE, CLOSE], {"reconcile.replay", "reconcile.resume_stream"}),
        ("verify", ["verify", CLOSE], set()),
    ],
)
def test_close_window_runs_after_any_failure_and_downstream_tasks_do_not(
    run_dag: RunDag, failing: str, follow: list[str], stopped: set[str]
) -> None:
    outcomes = {"open_window": follow, "find_holes": [CLOSE], failing: "fail"}
    states = run_dag(**outcomes)
    assert states["failed"] == {failing}
    assert CLOSE in states["success"]
    assert states.get("upstream_failed", set()) == stopped


@pytest.mark.parametrize(("outcome", "emitting"), [("fail", "success"), ("", "skipped")])
def test_the_events_of_a_run_that_fails_at_its_end_are_sent_after_it(
    run_dag: RunDag, outcome: str, emitting: str
) -> None:
    states = run_dag(open_window=[CLOSE], close_window=outcome)
    assert EMIT in states[emitting]
