"""The spark-submit call of a replicator's job, through the hook of Airflow's Spark provider.

The call contains no secret: its only argument is the path of the step file. The driver's environment is the worker's
without Airflow's connections, variables and settings.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from airflow_cdc_provider import appcds, bundle, jars, logstore
from airflow_cdc_provider.core.connections.allowed_extras import allowed_options
from airflow_cdc_provider.core.connections.connection_info import SECRETS_FILE
from airflow_cdc_provider.core.decisions.spark_application import TaskAttempt, application_name
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Definition, Target
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.storage.stores import STORES
from airflow_cdc_provider.hooks.connections import connection_info
from airflow_cdc_provider.java import find_java

AIRFLOW_VARIABLES = ("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__")
UTC = "-Duser.timezone=UTC"
READS_WHOLE_TABLES = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC, StepKind.VERIFY})
"""Steps that read whole tables. For the others the start-up time matters."""
ALLOWED_EXTRA = frozenset({"deploy-mode", "keytab", "namespace", "principal", "queue", "spark-binary"})
"""The extras of a Spark connection that are allowed; Airflow's hook reads them. The deploy mode is always client."""
LONG_JOB_ROWS = 1_000_000
"""From this number of rows on, the JVM's C2 compiler saves more time than it costs."""


@dataclass(frozen=True)
class SparkSubmission:
    """The parameters of spark-submit. ``local``: driver and executors are one JVM on this worker."""

    name: str
    connection: str
    local: bool
    application: str
    step_url: str
    conf: Mapping[str, str]
    jars: tuple[Path, ...]
    py_files: Path


class SparkJob:
    """A running submission."""

    def __init__(self, submission: SparkSubmission) -> None:
        self._submission = submission
        self.jars = class_path = tuple(str(jar) for jar in submission.jars)
        self._hook = SparkSubmitHook(
            conn_id=submission.connection,
            name=submission.name,
            conf=dict(submission.conf),
            driver_class_path=os.pathsep.join(class_path),
            jars=None if submission.local else ",".join(class_path),
            py_files=str(submission.py_files),
            application_args=[submission.step_url],
            deploy_mode="client",
        )

    def run(self, secrets: Path) -> str:
        """Submit, stream the driver's output into the task log, and wait. Returns an empty string if spark-submit
        succeeded, else its exit code and last lines. Raises CheckFailed (ENV006) if spark-submit is not installed.

        The driver runs in a process group of its own, so that a kill ends all of its processes.
        """
        environment = driver_environment(os.environ, Path(sys.executable), find_java().home)
        environment[SECRETS_FILE] = str(secrets)
        try:
            self._hook.submit(self._submission.application, env=environment, start_new_session=True)
        except AirflowException as error:
            text, _, code_and_tail = str(error).partition("Error code is: ")
            return f"exit code {code_and_tail}" if code_and_tail else text
        except FileNotFoundError as error:
            raise CheckFailed.of(
                "ENV006",
                "spark-submit cannot be started",
                where="PATH of the worker",
                found=f"{error.filename} does not exist",
                do="install pyspark in the worker's Python environment",
            ) from None
        return ""

    def kill(self) -> None:
        """Kill spark-submit. May be called from any thread or signal handler, also if nothing is running."""
        self._hook.on_kill()

    def close(self) -> None:
        """Kill spark-submit if it still runs, reap it and close its pipe: the hook does neither."""
        self.kill()
        process: subprocess.Popen[str] | None = self._hook._submit_sp
        if process is not None:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def submission(definition: Definition, attempt: TaskAttempt, step_url: str, rows: int | None) -> SparkSubmission:
    """The submission of one step. ``rows``: of its tables, None if they were never counted. Raises CheckFailed: CON001
    or CON003 if the Spark connection is missing or has no master (the Spark provider would fall back to YARN), CON040
    for an extra that is not allowed, ENV001 without a usable Java; NotInstalled or Retryable for jars."""
    kind = attempt.kind
    local = spark_master(definition.spark.connection).startswith("local")
    class_path = logstore.class_path(job_jars(definition))
    options = [UTC, *java_options(kind, rows, class_path)]
    return SparkSubmission(
        name=application_name(definition.name, kind, attempt.id),
        connection=definition.spark.connection,
        local=local,
        application=job_file(kind),
        step_url=step_url,
        conf=spark_conf(definition.spark.conf, options, local) | attempt.settings,
        jars=tuple(class_path),
        py_files=bundle.build(),
    )


def java_options(kind: StepKind, rows: int | None, class_path: Sequence[Path]) -> list[str]:
    is_long = kind in READS_WHOLE_TABLES and (rows is None or rows >= LONG_JOB_ROWS)
    return appcds.java_options(appcds.archive(class_path), appcds.LONG_JOB if is_long else appcds.SHORT_JOB)


def spark_master(connection_id: str) -> str:
    connection = connection_info(connection_id)
    allowed_options(connection, ALLOWED_EXTRA)
    if not connection.host:
        raise CheckFailed.of(
            "CON003",
            f"Spark connection {connection_id} has no master",
            where=f"connection {connection_id}",
            found="an empty host",
            allowed="local[N], spark://host, k8s://https://host, yarn",
            do="set the host of the connection to the master URL",
        )
    return connection.host


def spark_conf(user_conf: Mapping[str, str], driver_options: Sequence[str], local: bool) -> dict[str, str]:
    """The defaults, overridden by the settings of the YAML. Java options are appended to the defaults instead. A local
    driver listens on loopback only."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    defaults = {
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    conf = defaults | (loopback if local else {}) | dict(user_conf)
    for option, values in (
        ("spark.driver.extraJavaOptions", driver_options),
        ("spark.executor.extraJavaOptions", [UTC]),
    ):
        conf[option] = " ".join([*values, *filter(None, [user_conf.get(option)])])
    return conf


def driver_environment(worker: Mapping[str, str], python: Path, java_home: Path) -> dict[str, Any]:
    """The worker's environment without Airflow's variables, with this Python, its folder first on PATH (it contains
    spark-submit), and Java."""
    environment = {name: value for name, value in worker.items() if not name.startswith(AIRFLOW_VARIABLES)}
    path = os.pathsep.join(filter(None, [str(python.parent), worker.get("PATH")]))
    return environment | {"PATH": path, "PYSPARK_PYTHON": str(python), "JAVA_HOME": str(java_home)}


def job_file(kind: StepKind) -> str:
    """Path of the job's script. The wheel contains ``spark_jobs`` next to this package."""
    spec = importlib.util.find_spec(f"spark_jobs.{kind}")
    assert spec is not None and spec.origin is not None, f"spark_jobs.{kind} is part of this distribution"
    return spec.origin


def job_jars(definition: Definition) -> list[str]:
    """Names of the jar groups that the targets and the storage locations need. Sources need none: Python reads them."""
    targets = definition.all_targets
    locations = (*(target.location for target in targets), definition.staging.location)
    schemes = {parse_location(location).scheme for location in locations}
    iceberg = [group for target in targets for group in _iceberg_jars(target)]
    groups = (*(target.type for target in targets), *sorted(schemes), *iceberg)
    return list(dict.fromkeys(name for name in groups if name in jars.read_lock()))


def _iceberg_jars(target: Target) -> list[str]:
    """For tables that a REST catalog creates in an object store."""
    storage = target.options.get("storage") if target.type == "iceberg" else None
    return [STORES[storage].iceberg_jars] if storage in STORES else []
