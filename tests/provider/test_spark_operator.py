"""The Spark operator against a spark-submit that is a real process but no Spark: what it tells the job, what it makes
of the job's end, and what it never shows."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.operators.failures import TaskFailed
from airflow_cdc_provider.staging.run_files import StepFolder
from tests.provider.scene import API_KEY, PASSWORD, Scene, context

pytestmark = pytest.mark.usefixtures("fake_spark", "own_cache", "connections")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def seen(folder: StepFolder) -> dict[str, Any]:
    """What the process behind spark-submit saw of itself."""
    content = json.loads(Path(folder.url, "seen.json").read_text())
    assert isinstance(content, dict)
    return content


def test_extract_is_told_every_table_and_the_bounds_of_the_window(scene: Scene) -> None:
    scene.plan("public.a", "public.b", extract=True, sealed=4, lo={"slot": "0/1"}, limit={"slot": "0/9"})
    summary = scene.execute("extract")
    [folder] = scene.folders("extract")
    step = folder.step()
    assert step is not None
    assert step.kind is StepKind.EXTRACT
    assert [task.table for task in step.tables] == ["public.a", "public.b"]
    assert (step.window, step.lo, step.limit) == (5, {"slot": "0/1"}, {"slot": "0/9"})
    assert (step.log_id, step.owner, step.folder) == ("log-1", "owner-1", folder.path)
    assert summary["tables"] == {"done": 2}
    assert summary["rows"] == 30


def test_stage_is_told_what_the_target_holds_now_not_what_the_plan_knew(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a",))
    scene.commit("public.a", fence=9, window=4)
    scene.execute("stage")
    step = scene.folders("stage")[0].step()
    assert step is not None
    [task] = step.tables
    assert task.control is not None
    assert (task.control.fence, task.control.window) == (9, 4)


def test_a_table_paused_after_the_plan_was_made_is_not_staged(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a", "public.b"))
    scene.commit("public.a", state=State(TableState.PAUSED, "2026-11-21T12:01:00Z"))
    scene.commit("public.b")
    scene.execute("stage")
    step = scene.folders("stage")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.b"]


def test_merge_is_told_only_the_tables_with_a_batch(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        scene.commit(table)
    staged = scene.staged("public.b")
    scene.execute("merge")
    step = scene.folders("merge")[0].step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of, step.window) == (["public.b"], staged, 5)


def test_merge_is_told_a_table_that_had_to_stop_early_with_what_came_before(scene: Scene) -> None:
    scene.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        scene.commit(table)
    staged = scene.staged("public.b", stopped=("public.a",))
    scene.execute("merge")
    step = scene.folders("merge")[0].step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of) == (["public.a", "public.b"], staged)


def test_resync_takes_the_tables_of_the_plan_and_those_that_met_a_hole_if_the_stream_left_them(scene: Scene) -> None:
    scene.plan("public.a", "public.b", "public.c", "public.d", reconcile=("public.a", "public.b"))
    scene.run.write_holes(("public.c",))
    for table in ("public.a", "public.c", "public.d"):
        scene.commit(table, state=State(TableState.RESYNCING, "2026-11-21T12:01:00Z"))
    scene.commit("public.b")
    scene.execute("resync")
    step = scene.folders("resync")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.a", "public.c"]


def test_replay_takes_only_the_tables_that_were_copied_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    scene.plan("public.a", "public.b", reconcile=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        scene.commit(table, state=State(TableState.RESYNCING, "2026-11-21T12:01:00Z"))
    scene.execute("resync")
    monkeypatch.setenv("FAKE_SPARK", "done")
    scene.execute("replay")
    step = scene.folders("replay")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.b"]


@pytest.mark.parametrize("step", ["snapshot", "extract", "stage", "merge", "resync", "replay", "verify"])
def test_a_step_with_nothing_to_do_is_skipped_without_a_process(scene: Scene, step: str) -> None:
    scene.plan()
    with pytest.raises(AirflowSkipException, match=f"nothing to {step}"):
        scene.execute(step)
    assert scene.folders(step) == []


def test_merge_is_skipped_without_a_process_when_stage_made_no_batch(scene: Scene) -> None:
    scene.plan("public.a", stream=("public.a",))
    scene.commit("public.a")
    scene.staged()
    with pytest.raises(AirflowSkipException):
        scene.execute("merge")
    assert scene.folders("merge") == []


def test_a_run_without_a_plan_fails_for_good_and_says_what_to_do(scene: Scene) -> None:
    with pytest.raises(AirflowFailException, match=r"STG006 this run has no plan.*clear open_window"):
        scene.execute("extract")


@pytest.mark.parametrize(
    ("how", "ending", "says"),
    [
        ("retryable", TaskFailed, "SRC001 the source does not answer"),
        ("hopeless", AirflowFailException, "SRC001 the source does not answer"),
        ("all fenced", AirflowSkipException, "public.a was taken over by a newer attempt"),
        ("dies", TaskFailed, "SPK001 (.|\n)*java.lang.OutOfMemoryError"),
        ("ends without a word", TaskFailed, "SPK001 the extract job ended without a result"),
    ],
)
def test_the_end_of_a_job_decides_whether_airflow_tries_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, how: str, ending: type[Exception], says: str
) -> None:
    monkeypatch.setenv("FAKE_SPARK", how)
    scene.plan("public.a", extract=True)
    with pytest.raises(ending, match=says):
        scene.execute("extract")
    assert scene.state.open_attempts(scene.definition.name) == ()


def test_a_failing_table_does_not_fail_the_task_but_is_named_in_its_log(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    scene.plan("public.a", "public.b", extract=True)
    assert scene.execute("extract")["tables"] == {"failing": 1, "done": 1}
    assert "public.a: failing" in capsys.readouterr().out


def test_a_job_that_died_has_a_result_that_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "dies")
    scene.plan("public.a", extract=True)
    with pytest.raises(TaskFailed):
        scene.execute("extract")
    result = scene.folders("extract")[0].result()
    assert result is not None
    assert result.problem is not None
    assert result.problem.found.startswith("exit code 3.")


def test_the_job_gets_its_secrets_by_a_private_file_that_is_gone_afterwards(scene: Scene) -> None:
    scene.plan("public.a", extract=True)
    scene.execute("extract")
    [folder] = scene.folders("extract")
    step = folder.step()
    assert step is not None
    assert seen(folder)["secrets"]["source"]["password"] == PASSWORD
    assert seen(folder)["secrets"]["target"]["extra"]["api_key"] == API_KEY
    assert seen(folder)["mode"] == "600 700"
    assert not Path(step.secrets_path).parent.exists()


def test_no_secret_is_left_when_the_driver_never_took_its_file(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.plan("public.a", extract=True)
    (scene.folder / "bin/spark-submit").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(TaskFailed):
        scene.execute("extract")
    step = scene.folders("extract")[0].step()
    assert step is not None
    assert not Path(step.secrets_path).parent.exists()


@pytest.mark.parametrize("how", ["done", "dies"])
def test_a_secret_shows_nowhere(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FAKE_SPARK", how)
    scene.plan("public.a", extract=True)
    operator = scene.operator("extract")
    operator.render_template_fields(context("extract"))
    returned: object
    try:
        returned = operator.execute(context("extract"))
    except TaskFailed as error:
        returned = error
    [folder] = scene.folders("extract")
    process = seen(folder)
    del process["secrets"]
    Path(folder.url, "seen.json").write_text(json.dumps(process))
    files = [path.read_text(errors="replace") for path in scene.folder.rglob("*") if path.is_file()]
    told = json.dumps([_serialize_rendered_fields(operator), str(returned), capfd.readouterr(), caplog.text, files])
    state_store = b"".join(
        path.read_bytes() for path in Path(scene.state.database.url.removeprefix("sqlite:///")).parent.iterdir()
    )
    assert scene.definition.name in told
    for secret in (PASSWORD, API_KEY):
        assert secret not in told
        assert secret.encode() not in state_store


def test_what_looks_like_a_template_in_the_definition_stays_as_it_is(scene: Scene) -> None:
    operator = scene.operator("extract")
    operator.definition["freshness_note"] = "{{ conn.shop_db.password }}"
    operator.render_template_fields(context("extract"))
    assert operator.definition["freshness_note"] == "{{ conn.shop_db.password }}"


def test_the_driver_gets_nothing_of_airflows_own_environment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_TOKEN", "x")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://airflow@db/airflow")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    scene.plan("public.a", extract=True)
    scene.execute("extract")
    environ = seen(scene.folders("extract")[0])["environ"]
    assert not [name for name in environ if name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__"))]
    assert environ["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert environ["PATH"].startswith(str(scene.folder / "bin"))
    assert environ["PYSPARK_PYTHON"] == str(scene.folder / "bin/python")
    assert Path(environ["JAVA_HOME"], "bin/java").exists()


def test_without_its_spark_connection_nothing_is_submitted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    scene.plan("public.a", extract=True)
    with pytest.raises(AirflowFailException, match="CON001 Airflow has no connection spark_default"):
        scene.execute("extract")
    assert scene.state.open_attempts(scene.definition.name) == ()


def test_the_link_of_a_task_leads_to_its_step_files(scene: Scene) -> None:
    scene.plan("public.a", extract=True)
    operator = scene.operator("extract")
    [link] = operator.operator_extra_links
    assert link.get_link(operator, ti_key=None) == ""  # type: ignore[arg-type]
    operator.execute(context("extract"))
    assert link.get_link(operator, ti_key=None) == Path(scene.folders("extract")[0].url).as_uri()  # type: ignore[arg-type]
