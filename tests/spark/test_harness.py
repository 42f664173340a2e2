"""A job always writes a result with a remedy, and never a secret."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableTask
from airflow_cdc_provider.core.errors import Blocked, Fenced, SourceUnavailable
from airflow_cdc_provider.core.log.copy_progress import Progress, format_progress
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.progress import report_progress
from tests.spark.replicator import Replicator
from tests.waiting import until

PASSWORD = "correct-horse-battery"
JOB = """
import os, sys, time
from airflow_cdc_provider.core.errors import Blocked, Problem
from spark_jobs.runtime import harness
from spark_jobs.runtime.console import log_line

def run(job):
    where = job.step.merge_of
    if where == "wait":
        print("waiting", flush=True)
        time.sleep(600)
    if where == "closed":
        readable, writable = os.pipe()
        os.close(readable)
        os.dup2(writable, 1)
        os.dup2(writable, 2)
        log_line("into nothing")
    if where == "blocked":
        raise Blocked(Problem("TST001", "no way"))
    return job.result([])

if __name__ == "__main__":
    harness.main(run)
"""


def task(name: str) -> TableTask:
    return TableTask(name, name, TableSchema(name, ()), TableRule(name), "", TableState.REPLICATING)


@pytest.fixture
def replicator(tmp_path: Path) -> Replicator:
    replicator = Replicator(tmp_path, "shop", ConnectionInfo("source", password=PASSWORD), [TableRule("public.a")])
    replicator.source_identity = {}  # there is no server
    return replicator


def test_a_failing_table_is_recorded_and_stops_no_other(spark: SparkSession, replicator: Replicator) -> None:
    failures = {
        "a": SourceUnavailable.of("TST001", "away"),
        "b": Blocked.of("TST002", "no way"),
        "c": Fenced.of("TST003", "newer"),
        "d": ValueError(f"odd {PASSWORD}"),
    }

    def one(_: object, work: TableWork) -> object:
        with work.phase("read"):
            if error := failures.get(work.task.table):
                raise error
        return work.result(Outcome.DONE, rows=work.spark.range(5).count())

    tasks = [task(name) for name in "abcde"]
    result = replicator.run(
        replicator.step(StepKind.MERGE, []),
        lambda job: job.result(job.for_each_table(tasks, one)),  # type: ignore[arg-type]
    )
    assert [(table.table, table.outcome, table.rows) for table in result.tables] == [
        ("a", Outcome.FAILING, 0),
        ("b", Outcome.BLOCKED, 0),
        ("c", Outcome.FENCED, 0),
        ("d", Outcome.FAILING, 0),
        ("e", Outcome.DONE, 5),
    ]
    problems = [table.problem.code for table in result.tables if table.problem]
    assert problems == ["TST001", "TST002", "TST003", "JOB001"]
    assert "ValueError: odd ***" in str(result.tables[3].problem)
    assert all("read" in table.phases for table in result.tables)
    assert result.problem is None


def test_tables_work_on_sessions_with_settings_of_their_own(spark: SparkSession, replicator: Replicator) -> None:
    def one(_: object, work: TableWork) -> object:
        assert work.spark.conf.get("spark.cdc.token", "none") == "none"
        work.spark.conf.set("spark.cdc.token", work.task.table)
        return work.result(Outcome.DONE, detail={"zone": work.spark.conf.get("spark.sql.session.timeZone")})

    tasks = [task(name) for name in "abcdef"]
    result = replicator.run(
        replicator.step(StepKind.MERGE, []),
        lambda job: job.result(job.for_each_table(tasks, one)),  # type: ignore[arg-type]
    )
    assert {(table.outcome, table.detail["zone"]) for table in result.tables} == {(Outcome.DONE, "UTC")}
    assert spark.conf.get("spark.cdc.token", "none") == "none"


@pytest.mark.parametrize(
    ("error", "code", "retryable", "exit_code"),
    [
        (SourceUnavailable.of("TST001", "away"), "TST001", True, 75),
        (Blocked.of("TST002", "no way"), "TST002", False, 65),
        (RuntimeError(f"odd {PASSWORD}"), "JOB001", True, 75),
    ],
)
def test_a_step_that_fails_says_whether_to_try_again(
    spark: SparkSession,
    replicator: Replicator,
    capfd: pytest.CaptureFixture[str],
    error: Exception,
    code: str,
    retryable: bool,
    exit_code: int,
) -> None:
    def run(job: Job) -> StepResult:
        with job.phase("read"):
            raise error

    step = replicator.step(StepKind.EXTRACT, [])
    assert harness.execute(step, run) == exit_code
    result = replicator.result(step)
    assert result.problem is not None
    assert (result.problem.code, result.retryable) == (code, retryable)
    assert set(result.phases) == {"read"}
    printed = capfd.readouterr()
    assert PASSWORD not in str(result) + printed.out + printed.err


def test_the_result_names_the_root_cause_of_a_java_error(spark: SparkSession, replicator: Replicator) -> None:
    def run(job: Job) -> StepResult:
        job.spark.sparkContext._jvm.java.lang.Integer.parseInt("x")  # type: ignore[union-attr]
        raise AssertionError

    result = replicator.run(replicator.step(StepKind.EXTRACT, []), run)
    assert result.problem is not None
    assert "NumberFormatException" in result.problem.found


def test_an_error_in_a_python_worker_is_named_by_its_own_line(spark: SparkSession, replicator: Replicator) -> None:
    def run(job: Job) -> StepResult:
        job.spark.sparkContext.parallelize([0], 1).map(lambda zero: 1 // zero).collect()
        raise AssertionError

    result = replicator.run(replicator.step(StepKind.EXTRACT, []), run)
    assert result.problem is not None
    assert "ZeroDivisionError" in result.problem.found


def test_secrets_are_read_once(spark: SparkSession, replicator: Replicator) -> None:
    step = replicator.step(StepKind.EXTRACT, [])
    assert replicator.run(step, lambda job: job.result([])).problem is None
    assert not Path(step.secrets_path).exists()
    again = replicator.run(step, lambda job: job.result([]))
    assert again.problem is not None and again.retryable
    assert again.problem.code == "JOB002"


def test_a_result_contains_memory_and_times_of_spark_if_it_was_needed(
    spark: SparkSession, replicator: Replicator
) -> None:
    def counted(job: Job) -> StepResult:
        assert job.spark.range(3).count() == 3
        return job.result([])

    result = replicator.run(replicator.step(StepKind.EXTRACT, []), counted)
    assert result.peak_memory_bytes["python"] > 10 << 20
    assert result.peak_memory_bytes["jvm_heap"] > 10 << 20
    assert set(result.phases) == {"start"}
    result = replicator.run(replicator.step(StepKind.EXTRACT, []), lambda job: job.result([]))
    assert (set(result.peak_memory_bytes), result.phases) == ({"python"}, {})


def test_progress_contains_rows_rate_percentage_and_time_left() -> None:
    assert format_progress(Progress(600, of=1000), 2.0) == "600 rows, 300 rows/s, 60% done, 1 s left"
    assert format_progress(Progress(600), 2.0) == "600 rows, 300 rows/s"


def test_progress_is_printed_while_the_work_runs(capfd: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    with report_progress("public.a", lambda: Progress(7), interval_s=0.02):
        until(lambda: lines.extend(capfd.readouterr().out.splitlines()) or len(lines) >= 2, "two lines")
    assert lines[0].startswith("public.a: 7 rows")


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.py"
    path.write_text(JOB)
    return path


@pytest.mark.jvm
@pytest.mark.parametrize(("case", "exit_code", "problem"), [("blocked", 65, "TST001"), ("closed", 0, None)])
def test_spark_submit_ends_with_the_exit_status_of_the_job(
    replicator: Replicator, job_file: Path, case: str, exit_code: int, problem: str | None
) -> None:
    step = replicator.step(StepKind.EXTRACT, [], merge_of=case)
    process = replicator.submit(step, job_file)
    output, _ = process.communicate()
    assert process.returncode == exit_code, output
    result = replicator.result(step)
    assert (result.problem.code if result.problem else None) == problem
    driver = json.loads(replicator.log.store.read(f"{step.folder}/driver.json"))
    assert driver["jvm_pid"] == process.pid


@pytest.mark.jvm
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)])
def test_driver_and_jvm_end_together_and_leave_no_result(
    replicator: Replicator, job_file: Path, number: signal.Signals
) -> None:
    step = replicator.step(StepKind.EXTRACT, [], merge_of="wait")
    process = replicator.submit(step, job_file)
    assert process.stdout is not None
    for text in process.stdout:
        if "waiting" in text:
            break
    driver = json.loads(replicator.log.store.read(f"{step.folder}/driver.json"))
    process.send_signal(number)
    process.communicate()
    until(lambda: not _alive(driver["pid"]), "the end of the Python driver, whose JVM is gone")
    assert not replicator.log.store.exists(f"{step.folder}/result.json")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
