"""One spark-submit call of a replicator's job, through the Spark provider's own hook.

Nothing secret is in it: the only argument is the path of the step file. The driver's environment is the worker's, less
everything by which Airflow hands out connections, variables and its own settings.
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
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.hooks.connections import connection_info
from airflow_cdc_provider.java import find_java

AIRFLOWS_OWN = ("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__")
UTC = "-Duser.timezone=UTC"
READS_WHOLE = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC, StepKind.VERIFY})
"""Steps that read tables whole; the others live from starting fast."""
EXTRA = frozenset({"deploy-mode", "keytab", "namespace", "principal", "queue", "spark-binary"})
"""What a Spark connection may say beside its master; Airflow's hook reads it, the submission is in client mode."""
MANY_ROWS = 1_000_000
"""From here on the full compiler saves more time than it takes."""


@dataclass(frozen=True)
class SparkSubmission:
    """What spark-submit is told. ``local``: driver and executors are one JVM on this worker."""

    name: str
    connection: str
    local: bool
    application: str
    step_url: str
    conf: Mapping[str, str]
    jars: tuple[Path, ...]
    py_files: Path


class SparkJob:
    """A submission under way."""

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
        """Submit, stream the driver's output into the task log, and wait. Returns an empty text where spark-submit
        ended well, else its exit code and last lines. Raises CheckFailed (ENV006) where there is no spark-submit.

        The driver gets a process group of its own, so that killing it takes all of it.
        """
        environment = driver_environment(os.environ, Path(sys.executable), find_java().home)
        environment[SECRETS_FILE] = str(secrets)
        try:
            self._hook.submit(self._submission.application, env=environment, start_new_session=True)
        except AirflowException as error:
            text, _, code_and_tail = str(error).partition("Error code is: ")
            return f"exit code {code_and_tail}" if code_and_tail else text
        except FileNotFoundError as error:
            raise CheckFailed(
                Problem(
                    "ENV006",
                    "spark-submit cannot be started",
                    where="PATH of the worker",
                    found=f"no {error.filename}",
                    do="install pyspark into the environment of the worker",
                )
            ) from None
        return ""

    def kill(self) -> None:
        """End spark-submit, from any thread or signal handler. Nothing under way is no error."""
        self._hook.on_kill()

    def close(self) -> None:
        """Kill what is left, and do what the hook leaves undone: reap the child, close the pipe."""
        self.kill()
        process: subprocess.Popen[str] | None = self._hook._submit_sp
        if process is not None:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def submission(definition: Definition, kind: StepKind, step_url: str, rows: int | None) -> SparkSubmission:
    """Everything for one step. ``rows`` of its tables, None where nobody has counted them yet. Raises CheckFailed:
    CON001 or CON003 where the Spark connection is missing or empty (the Spark provider would fall back to YARN), CON040
    where it says what is not allowed, ENV001 without a usable Java; NotInstalled or Retryable for jars."""
    local = spark_master(definition.spark.connection).startswith("local")
    class_path = logstore.class_path(job_jars(definition))
    options = [UTC, *java_options(kind, rows, class_path)]
    return SparkSubmission(
        name=f"cdc-{definition.name}-{kind}",
        connection=definition.spark.connection,
        local=local,
        application=job_file(kind),
        step_url=step_url,
        conf=spark_conf(definition.spark.conf, options, local),
        jars=tuple(class_path),
        py_files=bundle.build(),
    )


def java_options(kind: StepKind, rows: int | None, class_path: Sequence[Path]) -> list[str]:
    long = kind in READS_WHOLE and (rows is None or rows >= MANY_ROWS)
    return appcds.java_options(appcds.archive(class_path), appcds.LONG_JOB if long else appcds.SHORT_JOB)


def spark_master(connection_id: str) -> str:
    found = connection_info(connection_id)
    allowed_options(found, EXTRA)
    if not found.host:
        raise CheckFailed(
            Problem(
                "CON003",
                f"Spark connection {connection_id} names no master",
                where=f"connection {connection_id}",
                found="an empty host",
                allowed="local[N], spark://host, k8s://https://host, yarn",
                do="set the host of the connection to the master's URL",
            )
        )
    return found.host


def spark_conf(wanted: Mapping[str, str], driver_options: Sequence[str], local: bool) -> dict[str, str]:
    """The YAML's settings over ours. Java options add up, so that a setting of the YAML does not take away our own. A
    driver that is alone listens on loopback only."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    ours = {
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    conf = ours | (loopback if local else {}) | dict(wanted)
    for option, values in (
        ("spark.driver.extraJavaOptions", driver_options),
        ("spark.executor.extraJavaOptions", [UTC]),
    ):
        conf[option] = " ".join([*values, *filter(None, [wanted.get(option)])])
    return conf


def driver_environment(worker: Mapping[str, str], python: Path, java_home: Path) -> dict[str, Any]:
    """The worker's environment for a driver: this Python, its folder first on PATH (spark-submit is there), Java, and
    nothing of Airflow's own."""
    kept = {name: value for name, value in worker.items() if not name.startswith(AIRFLOWS_OWN)}
    path = os.pathsep.join(filter(None, [str(python.parent), worker.get("PATH")]))
    return kept | {"PATH": path, "PYSPARK_PYTHON": str(python), "JAVA_HOME": str(java_home)}


def job_file(kind: StepKind) -> str:
    """Path of the job's script; the wheel carries ``spark_jobs`` beside this package."""
    spec = importlib.util.find_spec(f"spark_jobs.{kind}")
    assert spec is not None and spec.origin is not None, f"spark_jobs.{kind} is part of this distribution"
    return spec.origin


def job_jars(definition: Definition) -> list[str]:
    """Names of the jar groups that the target and the places need. Sources are read by Python."""
    schemes = {
        parse_location(location).scheme for location in (definition.target.location, definition.staging.location)
    }
    wanted = (definition.target.type, *sorted(schemes))
    return [name for name in wanted if name in jars.read_lock()]
