"""Concurrent and repeated attempts: finished ones are reused, reachable drivers are killed, the others are fenced."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.core.decisions.steps import StepResult
from airflow_cdc_provider.core.errors import StateUnavailable
from airflow_cdc_provider.hooks import drivers
from airflow_cdc_provider.operators import attempt, lease
from airflow_cdc_provider.operators.failures import TaskFailed
from airflow_cdc_provider.staging.run_files import StepFolder
from airflow_cdc_provider.state.engine import open_engine
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.state.tables import leases
from tests.provider.step_harness import RUN, StepHarness, context
from tests.waiting import until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("fake_spark", "own_cache", "connections")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[StepHarness]:
    harness = StepHarness(tmp_path)
    yield harness
    for step_url in drivers.running(f"{harness.log.store.root}/"):
        drivers.end(step_url)


def seen(harness: StepHarness, step: str) -> bool:
    folders = harness.folders(step)
    return bool(folders) and Path(folders[0].url, "seen.json").exists()


def alive(folder: StepFolder) -> bool:
    return folder.step_url in drivers.running(folder.url)


@contextlib.contextmanager
def task_process(harness: StepHarness, step: str, behaviour: str) -> Iterator[subprocess.Popen[bytes]]:
    """A first try in a process of its own, until its driver runs."""
    command = [str(harness.folder / "bin/python"), "-m", "tests.provider.step_harness", str(harness.folder), step, "1"]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"FAKE_SPARK": behaviour})
    try:
        if behaviour == "silent start":
            until(lambda: harness.folders(step) and alive(harness.folders(step)[0]), "the driver of the step")
        else:
            until(lambda: seen(harness, step), "the driver of the step")
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_existing_result_is_reused(harness: StepHarness) -> None:
    harness.plan("public.a", extract=True, sealed=4)
    first = harness.execute("extract")
    assert harness.execute("extract", try_number=2)["attempt"] == first["attempt"]
    assert len(harness.folders("extract")) == 1


def test_the_result_of_a_merge_is_reused_where_its_commit_is_the_last(harness: StepHarness) -> None:
    harness.plan("public.a", stream=("public.a",))
    harness.commit("public.a")
    harness.staged("public.a")
    first = harness.execute("merge")
    harness.commit("public.a", window=5, attempt=first["attempt"])
    assert harness.execute("merge", try_number=2)["attempt"] == first["attempt"]


def test_a_copy_is_made_again_when_its_commit_is_not_in_the_target(harness: StepHarness) -> None:
    harness.plan("public.a", copy=("public.a",))
    first = harness.execute("snapshot")
    assert harness.execute("snapshot", try_number=2)["attempt"] != first["attempt"]


def test_a_failing_table_is_tried_again(harness: StepHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.plan("public.a", "public.b", extract=True)
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    first = harness.execute("extract")
    monkeypatch.setenv("FAKE_SPARK", "done")
    assert harness.execute("extract", try_number=2)["attempt"] != first["attempt"]


def test_a_retry_on_another_worker_raises_no_fence_when_the_end_of_the_driver_was_seen(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.plan("public.a", stream=("public.a",))
    before = harness.commit("public.a")
    harness.staged("public.a")
    monkeypatch.setenv("FAKE_SPARK", "dies")
    with pytest.raises(TaskFailed):
        harness.execute("merge")
    monkeypatch.setattr(drivers, "process_space", lambda: "worker-2 5a3c pid:[1]")
    monkeypatch.setenv("FAKE_SPARK", "done")
    harness.execute("merge", try_number=2)
    assert harness.control("public.a") == before
    assert len(harness.folders("merge")) == 2


@pytest.mark.parametrize("behaviour", ["hangs", "silent start"])
def test_the_driver_of_a_killed_task_is_killed_by_the_next_attempt_which_then_merges(
    harness: StepHarness, behaviour: str
) -> None:
    harness.plan("public.a", stream=("public.a",))
    before = harness.commit("public.a")
    harness.staged("public.a")
    with task_process(harness, "merge", behaviour) as task:
        orphan = harness.folders("merge")[0]
        step = orphan.step()
        assert step is not None
        os.kill(task.pid, signal.SIGKILL)
        task.wait()
        assert alive(orphan)
        assert len(harness.state.open_attempts(harness.definition.name)) == 1
        assert harness.execute("merge", try_number=2)["tables"] == {"done": 1}
    assert not alive(orphan)
    assert not Path(step.secrets_path).parent.exists()
    assert harness.state.open_attempts(harness.definition.name) == ()
    assert harness.control("public.a") == before, "the end of the orphan was seen: no fence is needed"


def test_tables_that_an_earlier_merge_committed_are_not_merged_again(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        harness.commit(table)
    harness.staged("public.a", "public.b")
    stale = harness.stale_attempt("merge", "public.a")
    committed = harness.commit("public.a", window=5, attempt=stale.attempt)
    harness.execute("merge", try_number=2)
    _, last = harness.folders("merge")
    step, result = last.step(), last.result()
    assert step is not None
    assert result is not None
    assert [task.table for task in step.tables] == ["public.b"]
    found = {table.table: (table.found, table.counts) for table in result.tables}
    assert found == {"public.a": (True, {}), "public.b": (False, {})}
    assert harness.control("public.a") == committed, "the stale attempt has made its one commit: no fence is needed"


def test_a_new_batch_of_a_cleared_run_is_merged_although_its_first_merge_had_committed(harness: StepHarness) -> None:
    """A backfill of Airflow repeats an existing run of its interval under the same id."""
    harness.plan("public.a", stream=("public.a",))
    harness.commit("public.a")
    harness.staged("public.a")
    harness.execute("merge")
    first = harness.folders("merge")[0].step()
    assert first is not None
    harness.commit("public.a", window=5, attempt=first.attempt)
    new_batch = harness.staged("public.a", number=2)
    harness.execute("merge", try_number=2)
    _, last = harness.folders("merge")
    step = last.step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of) == (["public.a"], new_batch)
    assert Path(last.url, "seen.json").exists()


@pytest.mark.parametrize("step", ["merge", "snapshot", "resync"])
def test_a_step_with_all_its_commits_starts_no_process_again(harness: StepHarness, step: str) -> None:
    harness.plan("public.a", stream=("public.a",), copy=("public.a",), reconcile=("public.a",))
    harness.staged("public.a")
    stale = harness.stale_attempt(step, "public.a")
    harness.commit("public.a", window=5, attempt=stale.attempt)
    assert harness.execute(step, try_number=2)["tables"] == {"done": 1}
    _, last = harness.folders(step)
    assert last.result() is not None
    assert not Path(last.url, "seen.json").exists()


def test_an_orphan_without_a_record_is_killed(harness: StepHarness) -> None:
    """The state store was lost, and the orphan belongs to another run: only the processes of this worker show it."""
    harness.plan("public.a", stream=("public.a",))
    harness.commit("public.a")
    harness.staged("public.a")
    folder = StepFolder(harness.log.store, "steps/an%20earlier%20run/merge/1")
    stale = harness.stale_attempt("merge", "public.a")
    folder.write_step(stale)
    assert harness.state.close_attempt(stale.attempt, "forgotten")
    command = [sys.executable, "-c", "import time; time.sleep(600)", "/x/spark_jobs/merge.py", folder.step_url]
    with subprocess.Popen(command) as orphan:
        until(lambda: alive(folder), "the driver of the step")
        harness.execute("stage")
        assert orphan.wait(10) == -signal.SIGKILL


def test_a_stale_merge_on_another_worker_is_fenced_before_stage_continues(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    before = harness.commit("public.a", owner=harness.state.owner())
    untouched = harness.commit("public.b", owner=harness.state.owner())
    harness.staged("public.a")
    harness.stale_attempt("merge", "public.a")
    harness.execute("stage")
    fenced = harness.control("public.a")
    assert (fenced.fence, fenced.window) == (before.fence + 1, before.window)
    assert fenced.nonce
    assert harness.control("public.b") == untouched
    step = harness.folders("stage")[0].step()
    assert step is not None
    assert {task.table: task.control and task.control.fence for task in step.tables} == {"public.a": 2, "public.b": 1}
    assert harness.state.open_attempts(harness.definition.name) == ()
    actions = {note.action: note.detail for note in harness.state.audit(harness.definition.name, 10)}
    assert actions["shut out"]["tables"] == ["public.a"]
    assert actions["fence"]["fence"] == before.fence + 1


def test_the_other_tables_are_fenced_beside_a_copy_that_another_state_store_took_over(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    taken = harness.commit("public.a", owner="another")
    before = harness.commit("public.b", owner=harness.state.owner())
    harness.staged("public.a", "public.b")
    harness.stale_attempt("merge", "public.a", "public.b")
    harness.execute("stage")
    assert harness.control("public.a") == taken
    assert harness.control("public.b").fence == before.fence + 1


def test_a_merge_on_another_worker_with_a_result_has_ended_and_is_not_fenced(harness: StepHarness) -> None:
    """Its task died between reading the result and closing the attempt."""
    harness.plan("public.a", stream=("public.a",))
    before = harness.commit("public.a")
    stale = harness.stale_attempt("merge", "public.a")
    harness.folders("merge")[0].write_result(StepResult(stale.kind, stale.attempt))
    harness.execute("stage")
    assert harness.control("public.a") == before
    assert harness.state.open_attempts(harness.definition.name) == ()


def test_a_merge_beside_a_stale_one_leaves_its_tables_to_the_next_run(
    harness: StepHarness,
) -> None:
    harness.plan("public.a", stream=("public.a",))
    before = harness.commit("public.a", owner=harness.state.owner())
    harness.staged("public.a")
    harness.stale_attempt("merge", "public.a")
    with pytest.raises(AirflowSkipException, match="FEN001"):
        harness.execute("merge", try_number=2)
    assert harness.control("public.a").fence == before.fence + 1
    assert len(harness.folders("merge")) == 1


def test_a_stale_extract_raises_no_fence_because_it_writes_to_no_table(harness: StepHarness) -> None:
    harness.plan("public.a", extract=True, stream=("public.a",))
    before = harness.commit("public.a")
    harness.stale_attempt("extract", "public.a")
    harness.execute("extract", try_number=2)
    harness.execute("stage")
    assert harness.control("public.a") == before


def test_a_step_is_skipped_while_another_run_has_the_lease_and_names_the_run(harness: StepHarness) -> None:
    harness.plan("public.a", extract=True)
    assert harness.state.acquire(harness.definition.name, "stream", "manual__later", 60)
    with pytest.raises(AirflowSkipException, match=r"LSE001.*run manual__later"):
        harness.execute("extract")
    assert harness.folders("extract") == []


def test_a_copy_does_not_wait_for_the_stream(harness: StepHarness) -> None:
    harness.plan("public.a", copy=("public.a",))
    assert harness.state.acquire(harness.definition.name, "stream", "manual__later", 60)
    assert harness.execute("snapshot")["tables"] == {"done": 1}


def test_a_step_that_loses_its_lease_while_running_kills_its_driver_and_is_skipped(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.2)
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    harness.plan("public.a", extract=True)

    def take_over() -> None:
        until(lambda: seen(harness, "extract"), "the driver of the step")
        with open_engine(harness.state.database.url).begin() as connection:
            mine = (leases.c.replicator == harness.definition.name) & (leases.c.holder == RUN)
            connection.execute(leases.update().where(mine).values(holder="manual__later"))

    thief = threading.Thread(target=take_over)
    thief.start()
    with pytest.raises(AirflowSkipException, match="LSE001"):
        harness.execute("extract")
    thief.join()
    assert not alive(harness.folders("extract")[0])


def test_a_lease_is_renewed_while_its_step_runs(harness: StepHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.1)
    monkeypatch.setattr(lease, "LEASE_S", 0.6)
    store, name = harness.state, harness.definition.name
    with lease.RenewedLease(store, name, lease.Lane.STREAM, RUN, lambda: pytest.fail("the lane was lost")):
        time.sleep(1.5)
        assert store.holder(name, "stream") == RUN
    time.sleep(0.8)
    assert store.holder(name, "stream") is None


def test_a_step_that_cannot_renew_its_lease_kills_its_driver_and_is_tried_again(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.2)
    monkeypatch.setattr(lease, "LEASE_S", 3.0)
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    harness.plan("public.a", extract=True)

    def gone(*_: object) -> bool:
        raise StateUnavailable.of("STA010", "the state store cannot be used")

    monkeypatch.setattr(StateStore, "renew", gone)
    with pytest.raises(TaskFailed, match=r"LSE002.*STA010"):
        harness.execute("extract")
    assert not alive(harness.folders("extract")[0])


def test_a_step_that_loses_its_lease_before_it_submits_starts_no_driver(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.1)
    harness.plan("public.a", extract=True)

    def taken_meanwhile(*_: object) -> list[object]:
        with open_engine(harness.state.database.url).begin() as connection:
            connection.execute(leases.update().where(leases.c.holder == RUN).values(holder="manual__later"))
        time.sleep(1)
        return []

    monkeypatch.setattr(attempt, "end_stale_attempts", taken_meanwhile)
    with pytest.raises(AirflowSkipException, match="LSE001"):
        harness.execute("extract")
    assert harness.folders("extract") == []


def test_on_kill_ends_the_driver_and_the_attempt(harness: StepHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    harness.plan("public.a", extract=True)
    operator = harness.operator("extract")

    def kill() -> None:
        until(lambda: seen(harness, "extract"), "the driver of the step")
        operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(TaskFailed):
        operator.execute(context("extract"))
    killer.join()
    assert not alive(harness.folders("extract")[0])
    assert harness.state.open_attempts(harness.definition.name) == ()


def test_a_timeout_in_the_task_ends_the_driver(harness: StepHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    harness.plan("public.a", extract=True)

    def out_of_time(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            harness.execute("extract")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not alive(harness.folders("extract")[0])
    assert harness.state.open_attempts(harness.definition.name) == ()


def test_a_python_driver_that_outlives_its_spark_submit_is_ended_before_the_attempt_counts_as_over(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SPARK", "leaves its driver")
    harness.plan("public.a", extract=True)
    with pytest.raises(TaskFailed, match="SPK001"):
        harness.execute("extract")
    assert not alive(harness.folders("extract")[0])


def test_an_editor_on_a_step_file_is_no_driver(harness: StepHarness) -> None:
    folder = harness.run.folder("extract", 1)
    command = [sys.executable, "-c", "import time; time.sleep(600)", folder.step_url]
    with subprocess.Popen(command) as editor:
        time.sleep(0.3)
        assert drivers.end(folder.step_url)
        assert editor.poll() is None
        editor.kill()
