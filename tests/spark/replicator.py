"""A replicator without Airflow: makes steps, runs the jobs in this process or by spark-submit, reads their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider import appcds, bundle, jars
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.core.columns.functions import hash_key, hash_key_id
from airflow_cdc_provider.core.connections.connection_info import SECRETS_FILE, ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Step, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.selected_columns import disclosed_columns
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, spark_settings
from airflow_cdc_provider.targets.naming import default_name
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.sessions import new_session

JAVA_OPTIONS = "-Duser.timezone=UTC"
LOCAL = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


BUILT_AHEAD = ("delta",)
"""The groups of jars that ``make`` has built a class archive for."""


class Replicator:
    """``name``: of the replicator and its publication. Staging and lake are in ``folder``, or under ``base_url``, whose
    connection is ``objects``. ``target``: another target, with the connections ``warehouse`` and ``stage``."""

    def __init__(
        self,
        folder: Path,
        name: str,
        connection: ConnectionInfo,
        rules: Sequence[TableRule],
        base_url: str = "",
        objects: ConnectionInfo | None = None,
        target: Target | None = None,
        warehouse: ConnectionInfo | None = None,
        stage: ConnectionInfo | None = None,
    ) -> None:
        self.folder = folder
        self.jars = [*BUILT_AHEAD, parse_location(base_url).scheme] if base_url else list(BUILT_AHEAD)
        self.jars += [target.type] if target and target.type in jars.read_lock().keys() - set(self.jars) else []
        base_url = base_url or str(folder)
        objects = objects or ConnectionInfo()
        self.definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": name}),
            target=target or Target("delta", f"{base_url}/lake"),
            tables=tuple(rules),
            staging=Staging(f"{base_url}/staging"),
        )
        self.secrets = Secrets(connection, warehouse or objects, objects, stage=stage or ConnectionInfo())
        self.log = open_log(self.definition, self.secrets.staging)
        self.log_id = self.log.create("tests", "2026-01-01T00:00:00Z")

    @property
    def source(self) -> SourceConnector:
        return open_source(self.definition, self.secrets.source)

    @cached_property
    def source_identity(self) -> dict[str, str]:
        return self.source.identity()

    @property
    def target(self) -> TargetTables:
        return open_targets(self.definition, self.secrets, self.log).only

    def tasks(self, *names: str) -> tuple[TableTask, ...]:
        """The tasks of a run that starts now."""
        key = hash_key(self.definition, self.secrets.hash)
        chosen, problems = select(self.definition, self.source.tables(), default_name, key)
        assert not problems, problems
        tasks = []
        for one in chosen:
            control = self.target.state(one.table, one.target).control
            copied = [control.schema] if control and control.schema else []
            disclosed = disclosed_columns(None, one.selected, copied) if one.rule.sensitive else None
            state = control.state.name if control else TableState.PENDING
            tasks.append(one.task(state, control, disclosed=disclosed))
        return tuple(task for task in tasks if not names or task.table in names)

    def step(self, kind: StepKind, tables: Sequence[TableTask] | None = None, **more: Any) -> Step:
        """A step with a fresh attempt and its secrets file."""
        attempt = uuid.uuid4().hex
        secrets = self.folder / f"secrets-{attempt}.json"
        secrets.touch(0o600)
        secrets.write_text(json.dumps(to_plain(self.secrets)))
        tasks = self.tasks() if tables is None else tuple(tables)
        if kind is StepKind.VERIFY:
            more.setdefault("compare", tuple(task.table for task in tasks))
        step = Step(
            kind=kind,
            definition=self.definition,
            run_id="run",
            attempt=attempt,
            folder=f"steps/run/{kind}/{attempt}",
            secrets_path=str(secrets),
            owner=more.pop("owner", "tests"),
            log_id=self.log_id,
            epoch=1,
            source_identity=self.source_identity,
            tables=tasks,
            hash_key_id=hash_key_id(hash_key(self.definition, self.secrets.hash)),
            **more,
        )
        self.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
        return step

    def run(self, step: Step, run: Callable[[Job], StepResult]) -> StepResult:
        """Runs the step in this process and its Spark session."""
        harness.execute(step, run)
        return self.result(step)

    def result(self, step: Step) -> StepResult:
        return from_plain(StepResult, json.loads(self.log.store.read(f"{step.folder}/result.json")))

    def submit(
        self,
        step: Step,
        job: Path | None = None,
        conf: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Starts the step by spark-submit, as the operator does."""
        url = self.log.store.url(f"{step.folder}/step.json")
        return spark_submit(step, url, self.folder, self.jars, job, conf, environment)

    def named(self, target_table: str) -> str:
        """The name of a target table in SQL of ``foreign_session``."""
        location = self.target.locate(target_table)
        return f"delta.`{location}`" if self.definition.target.type == "delta" else location

    def foreign_session(self, spark: SparkSession) -> SparkSession:
        """A session of another client of the target."""
        session = new_session(spark)
        if self.definition.target.type == "iceberg":
            for name, value in spark_settings(catalog_location(self.definition.target, self.secrets.target)).items():
                session.conf.set(name, value)
        return session

    def copied(self, spark: SparkSession, task: TableTask) -> DataFrame:
        return spark.read.format("delta").load(self.target.locate(task.target))


def driver_settings(groups: Sequence[str]) -> dict[str, str]:
    """Settings of a JVM that runs one job."""
    on_path = class_path(groups)
    archive = appcds.archive(on_path) if tuple(groups) == BUILT_AHEAD else None
    return {
        "spark.driver.extraJavaOptions": " ".join([JAVA_OPTIONS, *appcds.java_options(archive)]),
        "spark.driver.extraClassPath": ":".join(map(str, on_path)),
    }


def spark_submit(
    step: Step,
    step_url: str,
    folder: Path,
    groups: Sequence[str],
    job: Path | None = None,
    conf: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """A driver of its own, working in ``folder``, with these groups of jars."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    settings = {
        **LOCAL,
        **driver_settings(groups),
        "spark.executor.extraJavaOptions": " ".join([JAVA_OPTIONS, *appcds.SHORT_JOB]),
        **(conf or {}),
    }
    command = [
        str(Path(spec.origin).parent / "bin" / "spark-submit"),
        *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
        *("--py-files", str(bundle.build())),
        str(job or Path(__file__).parents[2] / "spark_jobs" / f"{step.kind}.py"),
        step_url,
    ]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            SECRETS_FILE: step.secrets_path,
            **(environment or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def by_table(result: StepResult) -> dict[str, TableResult]:
    assert result.problem is None, result.problem
    return {table.table: table for table in result.tables}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
