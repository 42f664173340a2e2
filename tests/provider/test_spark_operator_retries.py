"""Attempts beside and after each other: finished ones are taken, reachable drivers killed, the others fenced."""

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
from airflow_cdc_provider.core.errors import Problem, StateUnavailable
from airflow_cdc_provider.hooks import drivers
from airflow_cdc_provider.operators import attempt, lease
from airflow_cdc_provider.operators.failures import TaskFailed
from airflow_cdc_provider.staging.run_files import StepFolder
from airflow_cdc_provider.state.engine import open_engine
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.state.tables import leases
from tests.provider.scene import RUN, Scene, context
from tests.waiting import until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("fake_spark", "own_cache", "connections")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    for step_url in drivers.running(f"{scene.log.store.root}/"):
        drivers.end(step_url)


def seen(scene: Scene, step: str) -> bool:
    folders = scene.folders(step)
    return bool(folders) and Path(folders[0].url, "seen.json").exists()


def alive(folder: StepFolder) -> bool:
    return folder.step_url in drivers.running(folder.url)


@contextlib.contextmanager
def task_process(scene: Scene, step: str, behaviour: str) -> Iterator[subprocess.Popen[bytes]]:
    """A first try in a process of its own, up to where its driver runs."""
    command = [str(scene.folder / "bin/python"), "-m", "tests.provider.scene", str(scene.folder), step, "1"]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"FAKE_SPARK": behaviour})
    try:
        if behaviour == "silent start":
            until(lambda: scene.folders(step) and alive(scene.folders(step)[0]), "the driver of the step")
        else:
            until(lambda: seen(scene, step), "the driver of the step")
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_result_that_stands_is_taken_instead_of_running_again(scene: Scene) -> None:
    scene.plan("public.a", extract=True, sealed=4)
    first = scene.execute("extract")
    assert scene.execute("extract", try_number=2)["attempt"] == first["attempt"]
    assert len(scene.folders("extract")) == 1


def test_a_merge_is_taken_as_done_when_its_commit_is_still_the_last(scene: Scene) -> None:
    scene.plan("public.a", stream=("public.a",))
    scene.commit("public.a")
    scene.staged("public.a")
    first = scene.execute("merge")
    scene.commit("public.a", window=5, attempt=first["attempt"])
    assert scene.execute("merge", try_number=2)["attempt"] == first["attempt"]


def test_a_copy_is_made_again_when_its_commit_is_not_in_the_target(scene: Scene) -> None:
    scene.plan("public.a", copy=("public.a",))
    first = scene.execute("snapshot")
    assert scene.execute("snapshot", try_number=2)["attempt"] != first["attempt"]


def test_a_failing_table_is_tried_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.plan("public.a", "public.b", extract=True)
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    first = scene.execute("extract")
    monkeypatch.setenv("FAKE_SPARK", "done")
    assert scene.execute("extract", try_number=2)["attempt"] != first["attempt"]


def test_a_retry_on_another_worker_raises_no_fence_when_the_end_of_the_driver_was_seen(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.plan("public.a", stream=("public.a",))
    before = scene.commit("public.a")
    scene.staged("public.a")
    monkeypatch.setenv("FAKE_SPARK", "dies")
    with pytest.raises(TaskFailed):
        scene.execute("merge")
    monkeypatch.setattr(drivers, "process_space", lambda: "worker-2 5a3c pid:[1]")
    monkeypatch.setenv("FAKE_SPARK", "done")
    scene.execute("merge", try_number=2)
    assert scene.control("public.a") == before
    assert len(scene.folders("merge")) == 2


@pytest.mark.parametrize("behaviour", ["hangs", "silent start"])
def test_the_driver_of_a_killed_task_is_killed_by_the_next_attempt_which_then_merges(
    scene: Scene, behaviour: str
) -> None:
    scene.plan("public.a", stream=("public.a",))
    before = scene.commit("public.a")
    scene.staged("public.a")
    with task_process(scene, "merge", behaviour) as task:
        orphan = scene.folders("merge")[0]
        told = orphan.step()
        assert told is not None
        os.kill(task.pid, signal.SIGKILL)
        task.wait()
        assert alive(orphan)
        assert len(scene.state.open_attempts(scene.definition.name)) == 1
        assert scene.execute("merge", try_number=2)["tables"] == {"done": 1}
    assert not alive(orphan)
    assert not Path(told.secrets_path).parent.exists()
    assert scene.state.open_attempts(scene.definition.name) == ()
    assert scene.control("public.a") == before, "the orphan's end was seen: no fence is needed"


def test_what_an_earlier_merge_had_committed_is_not_merged_again_and_its_counts_are_kept(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        scene.commit(table)
    scene.staged("public.a", "public.b")
    unseen = scene.unseen("merge", "public.a")
    committed = scene.commit("public.a", window=5, attempt=unseen.attempt, counts={"updated": 7})
    scene.execute("merge", try_number=2)
    _, last = scene.folders("merge")
    step, result = last.step(), last.result()
    assert step is not None
    assert result is not None
    assert [task.table for task in step.tables] == ["public.b"]
    assert {table.table: table.counts for table in result.tables} == {"public.a": {"updated": 7}, "public.b": {}}
    assert scene.control("public.a") == committed, "it has made its one commit: there is nothing to shut out"


def test_what_a_cleared_run_stages_anew_is_merged_although_its_first_merge_had_committed(scene: Scene) -> None:
    """Airflow's backfill runs an existing run of its interval again, under the same id."""
    scene.plan("public.a", stream=("public.a",))
    scene.commit("public.a")
    scene.staged("public.a")
    scene.execute("merge")
    first = scene.folders("merge")[0].step()
    assert first is not None
    scene.commit("public.a", window=5, attempt=first.attempt)
    anew = scene.staged("public.a", number=2)
    scene.execute("merge", try_number=2)
    _, last = scene.folders("merge")
    step = last.step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of) == (["public.a"], anew)
    assert Path(last.url, "seen.json").exists()


@pytest.mark.parametrize("step", ["merge", "snapshot", "resync"])
def test_a_step_whose_commits_are_all_in_runs_no_process_again(scene: Scene, step: str) -> None:
    scene.plan("public.a", stream=("public.a",), copy=("public.a",), reconcile=("public.a",))
    scene.staged("public.a")
    unseen = scene.unseen(step, "public.a")
    scene.commit("public.a", window=5, attempt=unseen.attempt, counts={"updated": 7})
    assert scene.execute(step, try_number=2)["tables"] == {"done": 1}
    _, last = scene.folders(step)
    assert last.result() is not None
    assert not Path(last.url, "seen.json").exists()


def test_an_orphan_that_no_record_knows_is_killed_too(scene: Scene) -> None:
    """The state store was lost, and the orphan belongs to another run: only this worker's processes tell of it."""
    scene.plan("public.a", stream=("public.a",))
    scene.commit("public.a")
    scene.staged("public.a")
    folder = StepFolder(scene.log.store, "steps/an%20earlier%20run/merge/1")
    unseen = scene.unseen("merge", "public.a")
    folder.write_step(unseen)
    assert scene.state.close_attempt(unseen.attempt, "forgotten")
    command = [sys.executable, "-c", "import time; time.sleep(600)", "/x/spark_jobs/merge.py", folder.step_url]
    with subprocess.Popen(command) as orphan:
        until(lambda: alive(folder), "the driver of the step")
        scene.execute("stage")
        assert orphan.wait(10) == -signal.SIGKILL


def test_a_merge_that_may_still_run_elsewhere_is_shut_out_before_stage_goes_on(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a", "public.b"))
    before = scene.commit("public.a")
    untouched = scene.commit("public.b")
    scene.staged("public.a")
    scene.unseen("merge", "public.a")
    scene.execute("stage")
    fenced = scene.control("public.a")
    assert (fenced.fence, fenced.window) == (before.fence + 1, before.window)
    assert fenced.nonce
    assert scene.control("public.b") == untouched
    step = scene.folders("stage")[0].step()
    assert step is not None
    assert {task.table: task.control and task.control.fence for task in step.tables} == {"public.a": 2, "public.b": 1}
    assert scene.state.open_attempts(scene.definition.name) == ()
    actions = {note.action: note.detail for note in scene.state.audit(scene.definition.name, 10)}
    assert actions["shut out"]["tables"] == ["public.a"]
    assert actions["fence"]["fence"] == before.fence + 1


def test_a_merge_elsewhere_that_left_its_result_has_ended_and_is_not_shut_out(scene: Scene) -> None:
    """Its task died between reading the result and closing the attempt."""
    scene.plan("public.a", stream=("public.a",))
    before = scene.commit("public.a")
    unseen = scene.unseen("merge", "public.a")
    scene.folders("merge")[0].write_result(StepResult(unseen.kind, unseen.attempt))
    scene.execute("stage")
    assert scene.control("public.a") == before
    assert scene.state.open_attempts(scene.definition.name) == ()


def test_a_merge_beside_one_that_may_still_run_elsewhere_leaves_its_tables_to_the_next_run(scene: Scene) -> None:
    scene.plan("public.a", stream=("public.a",))
    before = scene.commit("public.a")
    scene.staged("public.a")
    scene.unseen("merge", "public.a")
    with pytest.raises(AirflowSkipException, match="FEN001"):
        scene.execute("merge", try_number=2)
    assert scene.control("public.a").fence == before.fence + 1
    assert len(scene.folders("merge")) == 1


def test_an_extract_elsewhere_raises_no_fence_because_it_writes_to_no_table(scene: Scene) -> None:
    scene.plan("public.a", extract=True, stream=("public.a",))
    before = scene.commit("public.a")
    scene.unseen("extract", "public.a")
    scene.execute("extract", try_number=2)
    scene.execute("stage")
    assert scene.control("public.a") == before


def test_a_step_is_skipped_while_another_run_holds_the_lane_and_says_which(scene: Scene) -> None:
    scene.plan("public.a", extract=True)
    assert scene.state.acquire(scene.definition.name, "stream", "manual__later", 60)
    with pytest.raises(AirflowSkipException, match=r"LSE001.*run manual__later"):
        scene.execute("extract")
    assert scene.folders("extract") == []


def test_a_copy_does_not_wait_for_the_stream(scene: Scene) -> None:
    scene.plan("public.a", copy=("public.a",))
    assert scene.state.acquire(scene.definition.name, "stream", "manual__later", 60)
    assert scene.execute("snapshot")["tables"] == {"done": 1}


def test_a_step_that_loses_its_lane_while_running_kills_its_driver_and_ends_quietly(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.2)
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    scene.plan("public.a", extract=True)

    def take_over() -> None:
        until(lambda: seen(scene, "extract"), "the driver of the step")
        with open_engine(scene.state.database.url).begin() as connection:
            mine = (leases.c.replicator == scene.definition.name) & (leases.c.holder == RUN)
            connection.execute(leases.update().where(mine).values(holder="manual__later"))

    thief = threading.Thread(target=take_over)
    thief.start()
    with pytest.raises(AirflowSkipException, match="LSE001"):
        scene.execute("extract")
    thief.join()
    assert not alive(scene.folders("extract")[0])


def test_a_lane_is_held_for_as_long_as_its_step_runs(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.1)
    monkeypatch.setattr(lease, "LEASE_S", 0.6)
    store, name = scene.state, scene.definition.name
    with lease.RenewedLease(store, name, lease.Lane.STREAM, RUN, lambda: pytest.fail("the lane was lost")):
        time.sleep(1.5)
        assert store.holder(name, "stream") == RUN
    time.sleep(0.8)
    assert store.holder(name, "stream") is None


def test_a_step_that_cannot_renew_its_lane_kills_its_driver_and_is_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.2)
    monkeypatch.setattr(lease, "LEASE_S", 3.0)
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    scene.plan("public.a", extract=True)

    def gone(*_: object) -> bool:
        raise StateUnavailable(Problem("STA010", "the state store cannot be used"))

    monkeypatch.setattr(StateStore, "renew", gone)
    with pytest.raises(TaskFailed, match=r"LSE002.*STA010"):
        scene.execute("extract")
    assert not alive(scene.folders("extract")[0])


def test_a_step_that_has_lost_its_lane_before_it_submits_starts_no_driver(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.1)
    scene.plan("public.a", extract=True)

    def taken_meanwhile(*_: object) -> list[object]:
        with open_engine(scene.state.database.url).begin() as connection:
            connection.execute(leases.update().where(leases.c.holder == RUN).values(holder="manual__later"))
        time.sleep(1)
        return []

    monkeypatch.setattr(attempt, "end_stale_attempts", taken_meanwhile)
    with pytest.raises(AirflowSkipException, match="LSE001"):
        scene.execute("extract")
    assert scene.folders("extract") == []


def test_on_kill_ends_the_driver_and_the_attempt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    scene.plan("public.a", extract=True)
    operator = scene.operator("extract")

    def kill() -> None:
        until(lambda: seen(scene, "extract"), "the driver of the step")
        operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(TaskFailed):
        operator.execute(context("extract"))
    killer.join()
    assert not alive(scene.folders("extract")[0])
    assert scene.state.open_attempts(scene.definition.name) == ()


def test_a_timeout_in_the_task_ends_the_driver(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "hangs")
    scene.plan("public.a", extract=True)

    def out_of_time(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            scene.execute("extract")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not alive(scene.folders("extract")[0])
    assert scene.state.open_attempts(scene.definition.name) == ()


def test_a_python_driver_that_outlives_its_spark_submit_is_ended_before_the_attempt_counts_as_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SPARK", "leaves its driver")
    scene.plan("public.a", extract=True)
    with pytest.raises(TaskFailed, match="SPK001"):
        scene.execute("extract")
    assert not alive(scene.folders("extract")[0])


def test_an_editor_on_a_step_file_is_no_driver(scene: Scene) -> None:
    folder = scene.run.folder("extract", 1)
    command = [sys.executable, "-c", "import time; time.sleep(600)", folder.step_url]
    with subprocess.Popen(command) as editor:
        time.sleep(0.3)
        assert drivers.end(folder.step_url)
        assert editor.poll() is None
        editor.kill()
