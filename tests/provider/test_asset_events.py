"""The events of assets at the end of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.sdk import DAG
from airflow.utils.session import create_session

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.operators import window
from airflow_cdc_provider.operators.asset_events import events_of
from tests.provider.run_harness import RunHarness

# A library of Airflow's API server warns about another one.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")
A, B = "public.a", "public.b"
ASSETS = {A: "cdc/shop/public_a", B: "cdc/shop/public_b"}


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


def test_an_event_has_the_position_of_the_copy_and_the_changes_of_the_run(harness: RunHarness) -> None:
    harness.source.change(A)
    result = harness.run("r2")
    [row] = [row for row in result.rows if row.table == A]
    [event] = events_of(harness.definition, result)
    assert event["asset"] == ASSETS[A]
    assert event["extra"] == {
        "table": A,
        "changes": {"updated": 1},
        "window": 2,
        "fresh_at": row.fresh_at,
        "rows": row.rows,
    }


DAG_FILE = """\
from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)
"""
YAML = """\
name: shop
source: {type: postgres, connection: db, publication: shop}
target: {type: delta, location: /lake}
tables:
  - source: public.*
staging: {location: /staging}
"""


@pytest.fixture
def dag(metadata_database: None) -> Iterator[DAG]:
    from airflow_cdc_provider.factory import build_dag

    file = Path(os.environ["AIRFLOW_HOME"], "dags", "shop.py")
    yaml = file.parent / "replicators" / "shop.yaml"
    yaml.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(DAG_FILE)
    yaml.write_text(YAML)
    yield build_dag(file)
    file.unlink()
    yaml.unlink()


class Events:
    """The events of a DAG run in which only the end of the run is executed."""

    def __init__(self, dag: DAG, replicator: Replicator, patch: pytest.MonkeyPatch) -> None:
        self.dag, self.replicator, self.patch = dag, replicator, patch

    def of_run(self, run_id: str) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Ends a run of the harness. Returns the state of the DAG run, of its last tasks, and events by asset."""
        close_window = window.close_window
        with self.patch.context() as patch:
            patch.setattr(time, "sleep", lambda seconds: None)
            patch.setattr(window.CloseWindowOperator, "replicator", lambda _: self.replicator)
            patch.setattr(window, "close_window", lambda replicator, _, *rest: close_window(replicator, run_id, *rest))
            patch.setattr(window, "send", lambda samples: None)
            ended = self.dag.test(mark_success_pattern=r"(?!close_window$|emit_asset_events$).*")
        states = {ti.task_id: str(ti.state) for ti in ended.get_task_instances()}
        with create_session() as session:
            found = session.query(AssetEvent).filter(AssetEvent.source_run_id == ended.run_id).all()
            events = {event.asset.name: event.extra for event in found}
        return str(ended.state), {task: states[task] for task in ("close_window", "emit_asset_events")}, events


@pytest.fixture
def events(dag: DAG, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> Events:
    return Events(dag, harness.replicator, monkeypatch)


def with_change(harness: RunHarness, run_id: str, *tables: str) -> None:
    harness.source.change(*tables)
    decision = harness.open(run_id)
    harness.spark(decision)


def test_a_run_that_succeeds_sends_the_events_of_its_tables_itself(harness: RunHarness, events: Events) -> None:
    with_change(harness, "r2", A)
    state, tasks, sent = events.of_run("r2")
    assert (state, tasks) == ("success", {"close_window": "success", "emit_asset_events": "skipped"})
    assert set(sent) == {ASSETS[A]}
    assert sent[ASSETS[A]]["changes"] == {"updated": 1}


def test_a_blocked_table_does_not_keep_the_events_of_the_others(harness: RunHarness, events: Events) -> None:
    with_change(harness, "r2", A)
    problem = Problem("SCH001", "a column was renamed", do="resync")
    harness.write_result("r2", "stage", StepKind.STAGE, [TableResult(B, Outcome.BLOCKED, problem=problem)])
    state, tasks, sent = events.of_run("r2")
    assert (state, tasks) == ("failed", {"close_window": "failed", "emit_asset_events": "success"})
    assert set(sent) == {ASSETS[A]}


def test_a_run_that_fails_without_a_change_sends_no_event(harness: RunHarness, events: Events) -> None:
    harness.source.change(A)
    harness.open("r2")
    problem = Problem("SCH001", "a column was renamed", do="resync")
    harness.write_result("r2", "stage", StepKind.STAGE, [TableResult(B, Outcome.BLOCKED, problem=problem)])
    state, tasks, sent = events.of_run("r2")
    assert (state, tasks, sent) == ("failed", {"close_window": "failed", "emit_asset_events": "skipped"}, {})


def test_what_a_run_committed_that_never_ended_is_sent_by_the_next(harness: RunHarness) -> None:
    with_change(harness, "r2", A)
    assert set(harness.run("r3").moved) == {A}
    assert set(harness.run("r4").moved) == set()


@pytest.mark.parametrize(("window", "changed"), [(1, True), (2, False), (3, True)])
def test_a_table_has_changed_if_its_cursor_has_moved(harness: RunHarness, window: int, changed: bool) -> None:
    harness.source.change(A)
    assert set(harness.run("r2").moved) == {A}
    before, control = harness.state.tables("shop")[A], harness.control(A)
    assert (before.window, before.changed) == (2, False)
    moved = replace(control, window=window, fence=control.fence + 1)
    assert current_row(A, "public_a", moved, before, before.since).changed is changed


def test_a_merge_that_changes_no_row_is_no_change(harness: RunHarness) -> None:
    """A poll reads the rows of its overlap again in each window."""
    harness.source.change(A)
    plan = harness.open("r2").plan
    harness.extract(plan)
    harness.merge(plan)
    nothing = TableResult(A, Outcome.DONE, 1, {}, harness.control(A).fence, 2)
    harness.write_result("r2", "merge", StepKind.MERGE, [nothing])
    assert (harness.close("r2").moved, harness.state.tables("shop")[A].window) == ({}, 2)


@pytest.mark.parametrize(("task", "kind"), [("merge", StepKind.MERGE), ("snapshot", StepKind.SNAPSHOT)])
def test_what_an_earlier_attempt_committed_is_sent(harness: RunHarness, task: str, kind: StepKind) -> None:
    harness.source.change(A)
    decision = harness.open("r2")
    harness.extract(decision.plan)
    fence, at = harness.control(A).fence, harness.control(A).window
    counts = {"read": 0} if kind is StepKind.SNAPSHOT else {}
    found = TableResult(A, Outcome.DONE, counts=counts, fence=fence, window=at, found=True)
    harness.write_result("r2", "stage", StepKind.STAGE, [])
    harness.write_result("r2", task, kind, [found])
    result = harness.close("r2")
    assert set(result.moved) == {A}
    [row] = [row for row in result.rows if row.table == A]
    assert not row.rows_current
