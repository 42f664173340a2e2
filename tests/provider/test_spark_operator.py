"""The Spark operator with a spark-submit that is a real process without Spark: the step of the job, the effect of its
end, and secrets."""

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
from tests.provider.step_harness import API_KEY, PASSWORD, RUN, StepHarness, context

pytestmark = pytest.mark.usefixtures("fake_spark", "own_cache", "connections")


@pytest.fixture
def harness(tmp_path: Path) -> StepHarness:
    return StepHarness(tmp_path)


def seen(folder: StepFolder) -> dict[str, Any]:
    """The command line and the environment of the process of spark-submit."""
    content = json.loads(Path(folder.url, "seen.json").read_text())
    assert isinstance(content, dict)
    return content


def test_the_step_of_extract_has_every_table_and_the_bounds_of_the_window(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", extract=True, sealed=4, lo={"slot": "0/1"}, limit={"slot": "0/9"})
    summary = harness.execute("extract")
    [folder] = harness.folders("extract")
    step = folder.step()
    assert step is not None
    assert step.kind is StepKind.EXTRACT
    assert [task.table for task in step.tables] == ["public.a", "public.b"]
    assert (step.window, step.lo, step.limit) == (5, {"slot": "0/1"}, {"slot": "0/9"})
    assert (step.log_id, step.owner, step.folder) == ("log-1", "owner-1", folder.path)
    assert summary["tables"] == {"done": 2}
    assert summary["rows"] == 30


def test_the_application_and_the_log_of_a_task_have_the_id_of_its_attempt(
    harness: StepHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.plan("public.a", extract=True, sealed=4, lo={"slot": "0/1"}, limit={"slot": "0/9"})
    summary = harness.execute("extract")
    [folder] = harness.folders("extract")
    step, words = folder.step(), seen(folder)["argv"]
    assert step is not None and summary["attempt"] == step.attempt
    assert words[words.index("--name") + 1] == f"cdc-{harness.definition.name}-extract-{step.attempt}"
    settings = {f"spark.cdc.attempt={step.attempt}", f"spark.cdc.run_id={RUN}", "spark.cdc.task_id=extract"}
    assert settings | {"spark.cdc.try_number=1", f"spark.cdc.replicator={harness.definition.name}"} <= set(words)
    assert capsys.readouterr().out.count(f" attempt {step.attempt}: ") == 1


@pytest.mark.parametrize("problem", [{}, {"problem": {"code": "SRC001", "what": "the source does not answer"}}])
def test_a_task_links_to_its_application_in_the_history_server_if_there_is_one(
    harness: StepHarness, problem: dict[str, Any]
) -> None:
    harness.plan("public.a", extract=True, sealed=4, lo={"slot": "0/1"}, limit={"slot": "0/9"})
    operator = harness.operator("extract")
    link = next(one for one in operator.operator_extra_links if one.name == "Spark history")
    assert link.get_link(operator, ti_key=context("extract")["ti"]) == "", "before the task ran"
    operator.execute(context("extract"))
    assert link.get_link(operator, ti_key=context("extract")["ti"]) == ""
    result = Path(harness.folders("extract")[0].url, "result.json")
    page = {"application": "local-1", "history_url": "http://spark.acme.com:18080/history/local-1/"}
    result.write_text(json.dumps({**json.loads(result.read_text()), **page, **problem}))
    assert link.get_link(operator, ti_key=context("extract")["ti"]) == page["history_url"]


def test_the_step_of_stage_has_the_current_control_records_not_those_of_the_plan(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a",))
    harness.commit("public.a", fence=9, window=4)
    harness.execute("stage")
    step = harness.folders("stage")[0].step()
    assert step is not None
    [task] = step.tables
    assert task.control is not None
    assert (task.control.fence, task.control.window) == (9, 4)


def test_a_table_paused_after_the_plan_was_made_is_not_staged(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    harness.commit("public.a", state=State(TableState.PAUSED, "2026-11-21T12:01:00Z"))
    harness.commit("public.b")
    harness.execute("stage")
    step = harness.folders("stage")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.b"]


def test_the_step_of_merge_has_only_tables_with_a_batch(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        harness.commit(table)
    staged = harness.staged("public.b")
    harness.execute("merge")
    step = harness.folders("merge")[0].step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of, step.window) == (["public.b"], staged, 5)


def test_the_step_of_merge_has_a_table_that_stopped_with_its_partial_batch(harness: StepHarness) -> None:
    harness.plan("public.a", "public.b", stream=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        harness.commit(table)
    staged = harness.staged("public.b", stopped=("public.a",))
    harness.execute("merge")
    step = harness.folders("merge")[0].step()
    assert step is not None
    assert ([task.table for task in step.tables], step.merge_of) == (["public.a", "public.b"], staged)


def test_resync_copies_tables_of_the_plan_and_tables_with_a_hole_that_are_resyncing(
    harness: StepHarness,
) -> None:
    harness.plan("public.a", "public.b", "public.c", "public.d", reconcile=("public.a", "public.b"))
    harness.run.write_holes("", ("public.c",))
    for table in ("public.a", "public.c", "public.d"):
        harness.commit(table, state=State(TableState.RESYNCING, "2026-11-21T12:01:00Z"))
    harness.commit("public.b")
    harness.execute("resync")
    step = harness.folders("resync")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.a", "public.c"]


def test_replay_has_only_the_tables_that_were_copied_again(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    harness.plan("public.a", "public.b", reconcile=("public.a", "public.b"))
    for table in ("public.a", "public.b"):
        harness.commit(table, state=State(TableState.RESYNCING, "2026-11-21T12:01:00Z"))
    harness.execute("resync")
    monkeypatch.setenv("FAKE_SPARK", "done")
    harness.execute("replay")
    step = harness.folders("replay")[0].step()
    assert step is not None
    assert [task.table for task in step.tables] == ["public.b"]


@pytest.mark.parametrize("step", ["snapshot", "extract", "stage", "merge", "resync", "replay", "verify"])
def test_a_step_with_nothing_to_do_is_skipped_without_a_process(harness: StepHarness, step: str) -> None:
    harness.plan()
    with pytest.raises(AirflowSkipException, match=f"nothing to {step}"):
        harness.execute(step)
    assert harness.folders(step) == []


def test_merge_is_skipped_without_a_process_when_stage_made_no_batch(harness: StepHarness) -> None:
    harness.plan("public.a", stream=("public.a",))
    harness.commit("public.a")
    harness.staged()
    with pytest.raises(AirflowSkipException):
        harness.execute("merge")
    assert harness.folders("merge") == []


def test_a_run_without_a_plan_fails_without_retries_and_with_a_remedy(harness: StepHarness) -> None:
    with pytest.raises(AirflowFailException, match=r"STG006 this run has no plan.*clear open_window"):
        harness.execute("extract")


@pytest.mark.parametrize(
    ("how", "ending", "message"),
    [
        ("retryable", TaskFailed, "SRC001 the source does not answer"),
        ("not retryable", AirflowFailException, "SRC001 the source does not answer"),
        ("all fenced", AirflowSkipException, "public.a was taken over by a newer attempt"),
        ("dies", TaskFailed, "SPK001 (.|\n)*java.lang.OutOfMemoryError"),
        ("ends without a result", TaskFailed, "SPK001 the extract job ended without a result"),
    ],
)
def test_the_end_of_a_job_determines_whether_airflow_tries_again(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch, how: str, ending: type[Exception], message: str
) -> None:
    monkeypatch.setenv("FAKE_SPARK", how)
    harness.plan("public.a", extract=True)
    with pytest.raises(ending, match=message):
        harness.execute("extract")
    assert harness.state.open_attempts(harness.definition.name) == ()


def test_a_failing_table_does_not_fail_the_task_but_is_named_in_its_log(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_SPARK", "one table fails")
    harness.plan("public.a", "public.b", extract=True)
    assert harness.execute("extract")["tables"] == {"failing": 1, "done": 1}
    assert "public.a: failing" in capsys.readouterr().out


def test_a_job_that_died_has_a_result_with_its_exit_code(harness: StepHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SPARK", "dies")
    harness.plan("public.a", extract=True)
    with pytest.raises(TaskFailed):
        harness.execute("extract")
    result = harness.folders("extract")[0].result()
    assert result is not None
    assert result.problem is not None
    assert result.problem.found.startswith("exit code 3.")


def test_the_job_gets_its_secrets_in_a_private_file_that_is_deleted(harness: StepHarness) -> None:
    harness.plan("public.a", extract=True)
    harness.execute("extract")
    [folder] = harness.folders("extract")
    step = folder.step()
    assert step is not None
    assert seen(folder)["secrets"]["source"]["password"] == PASSWORD
    assert seen(folder)["secrets"]["target"]["extra"]["api_key"] == API_KEY
    assert seen(folder)["mode"] == "600 700"
    assert not Path(step.secrets_path).parent.exists()


def test_no_secret_is_left_when_the_driver_did_not_read_its_file(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.plan("public.a", extract=True)
    (harness.folder / "bin/spark-submit").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(TaskFailed):
        harness.execute("extract")
    step = harness.folders("extract")[0].step()
    assert step is not None
    assert not Path(step.secrets_path).parent.exists()


@pytest.mark.parametrize("how", ["done", "dies"])
def test_a_secret_is_shown_nowhere(
    harness: StepHarness,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FAKE_SPARK", how)
    harness.plan("public.a", extract=True)
    operator = harness.operator("extract")
    operator.render_template_fields(context("extract"))
    returned: object
    try:
        returned = operator.execute(context("extract"))
    except TaskFailed as error:
        returned = error
    [folder] = harness.folders("extract")
    process = seen(folder)
    del process["secrets"]
    Path(folder.url, "seen.json").write_text(json.dumps(process))
    files = [path.read_text(errors="replace") for path in harness.folder.rglob("*") if path.is_file()]
    visible = json.dumps([_serialize_rendered_fields(operator), str(returned), capfd.readouterr(), caplog.text, files])
    state_store = b"".join(
        path.read_bytes() for path in Path(harness.state.database.url.removeprefix("sqlite:///")).parent.iterdir()
    )
    assert harness.definition.name in visible
    for secret in (PASSWORD, API_KEY):
        assert secret not in visible
        assert secret.encode() not in state_store


def test_a_template_in_the_definition_is_not_rendered(harness: StepHarness) -> None:
    operator = harness.operator("extract")
    operator.definition["freshness_note"] = "{{ conn.shop_db.password }}"
    operator.render_template_fields(context("extract"))
    assert operator.definition["freshness_note"] == "{{ conn.shop_db.password }}"


def test_the_driver_gets_nothing_of_airflows_own_environment(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_TOKEN", "x")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://airflow@db/airflow")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    harness.plan("public.a", extract=True)
    harness.execute("extract")
    environ = seen(harness.folders("extract")[0])["environ"]
    assert not [name for name in environ if name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__"))]
    assert environ["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert environ["PATH"].startswith(str(harness.folder / "bin"))
    assert environ["PYSPARK_PYTHON"] == str(harness.folder / "bin/python")
    assert Path(environ["JAVA_HOME"], "bin/java").exists()


def test_without_its_spark_connection_nothing_is_submitted(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    harness.plan("public.a", extract=True)
    with pytest.raises(AirflowFailException, match="CON001 Airflow has no connection spark_default"):
        harness.execute("extract")
    assert harness.state.open_attempts(harness.definition.name) == ()


def test_a_task_links_to_the_page_of_its_replicator_and_logs_its_step_files(
    harness: StepHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/prefix/")
    harness.plan("public.a", extract=True)
    operator = harness.operator("extract")
    link = next(one for one in operator.operator_extra_links if one.name == "Replicator")
    page = f"https://airflow.example.com/prefix/dags/{harness.definition.name}/plugin/replicator"
    assert link.get_link(operator, ti_key=None) == page  # type: ignore[arg-type]
    operator.execute(context("extract"))
    assert f"step files: {harness.folders('extract')[0].url}" in capsys.readouterr().out
