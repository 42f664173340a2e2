"""A job and the jobs made from it use the same open resources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.sessions import Application


def a_job(folder: Path) -> Job:
    definition = Definition(
        name="shop",
        source=Source(type="postgres", connection="db", options={"publication": "p", "slot": "s"}),
        target=Target(type="delta", location=str(folder / "lake")),
        tables=(TableRule("public.*"),),
        staging=Staging(location=str(folder / "staging")),
    )
    step = Step(StepKind.VERIFY, definition, "r1", "a1", "", "", "o1", "log-1", 1, {}, ())
    return Job(step, Secrets(), Application(lambda: None, lambda: "local[2]"))  # type: ignore[arg-type,return-value]


def test_a_job_at_another_window_uses_the_resources_that_are_open_or_opened_later(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    log = job.log
    later = replace(job, step=replace(job.step, window=7))
    assert later.log is log
    assert later.threads is job.threads
    assert later.tables is job.tables
    assert a_job(tmp_path).log is not log
