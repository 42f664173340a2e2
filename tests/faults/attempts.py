"""Attempts of Spark steps as the operator makes them, with a real driver or in the session of this process.

The code of the operator runs: it finds earlier attempts, kills or fences them, and reuses their results. Replaced are
the connections and the submission. An attempt that a case freezes runs on a worker of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from airflow_cdc_provider import appcds, bundle
from airflow_cdc_provider.core.connections.connection_info import SECRETS_FILE
from airflow_cdc_provider.core.decisions.spark_application import TaskAttempt
from airflow_cdc_provider.core.decisions.steps import StepKind, StepResult
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks import drivers
from airflow_cdc_provider.hooks.spark import job_file, job_jars, spark_conf
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.operators import attempt as operator
from airflow_cdc_provider.operators.attempt import Attempt
from airflow_cdc_provider.state.store import StateStore
from spark_jobs.runtime import harness
from tests.faults import breakpoints
from tests.faults.system import SystemUnderTest

LOCAL, REMOTE = "local", "remote"
hidden: set[str] = set()
"""Step files of drivers on the remote worker, which the local worker cannot see."""

worker: ContextVar[str] = ContextVar("worker", default=LOCAL)
armed: ContextVar[Mapping[str, str] | None] = ContextVar("armed", default=None)
"""The environment of a driver with an armed failpoint; None: the step runs in the session of this process."""


class WarmJob:
    """A step in this process, in its Spark session."""

    jars: tuple[str, ...] = ()

    def __init__(self, kind: StepKind, step_url: str) -> None:
        self.kind = kind
        self.step_url = step_url

    def run(self, secrets: Path) -> str:
        step = harness.read_step(self.step_url)
        harness.execute(step, importlib.import_module(f"spark_jobs.{self.kind}").run)
        return ""

    def kill(self) -> None:
        return

    close = kill


class ColdJob:
    """A step by spark-submit, as the operator runs it, in an environment with an armed failpoint."""

    def __init__(self, definition: Definition, kind: StepKind, step_url: str, environment: Mapping[str, str]) -> None:
        injected = breakpoints.class_path(environment)
        jars = [*injected, *class_path(job_jars(definition))]
        self.jars = tuple(map(str, jars))
        options = ["-Duser.timezone=UTC", *appcds.java_options(None if injected else appcds.archive(jars))]
        conf = spark_conf({"spark.driver.extraClassPath": os.pathsep.join(self.jars)}, options, local=True)
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        self._command = [
            str(Path(spec.origin).parent / "bin" / "spark-submit"),
            *("--master", "local[2]"),
            *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
            *("--py-files", str(bundle.build()), job_file(kind), step_url),
        ]
        self._environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **environment}
        self._output = Path(definition.staging.location).parent / "outputs" / step_url.replace("/", "-")[-80:]
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, secrets: Path) -> str:
        self._output.parent.mkdir(exist_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment | {SECRETS_FILE: str(secrets)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            code = self._process.wait()
        return f"exit code {code}" if code else ""

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        self.kill()
        if self._process is not None:
            self._process.wait()


def make_attempt(system: SystemUnderTest, run_id: str, task: str, number: int) -> Attempt:
    kind = StepKind(task.rpartition(".")[2])
    return Attempt(kind, system.definition, run_id, task, number, StateStore(system.state_url))


def result_of(system: SystemUnderTest, run_id: str, task: str, number: int) -> StepResult:
    """One try of a Spark task. Raises the errors of the attempt of the operator."""
    return make_attempt(system, run_id, task, number).result()


@contextlib.contextmanager
def operating(secrets_of: Any) -> Iterator[None]:
    """Runs the code of the operator without Airflow. ``secrets_of``: definition → secrets."""
    process_space, running = drivers.process_space, drivers.running

    def submission(definition: Definition, attempt: TaskAttempt, step_url: str, rows: int | None) -> Any:
        kind, environment = attempt.kind, armed.get()
        return WarmJob(kind, step_url) if environment is None else ColdJob(definition, kind, step_url, environment)

    def seen(found: dict[str, list[int]]) -> dict[str, list[int]]:
        return {url: pids for url, pids in found.items() if worker.get() == REMOTE or url not in hidden}

    with (
        mock.patch.object(operator, "secrets_of", secrets_of),
        mock.patch.object(operator, "submission", submission),
        mock.patch.object(operator, "SparkJob", lambda job: job),
        mock.patch.object(drivers, "process_space", lambda: f"{process_space()} {worker.get()}"),
        mock.patch.object(drivers, "running", lambda folder: seen(running(folder))),
    ):
        yield
