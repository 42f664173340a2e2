"""Runs a job: reads the step, starts Spark on demand, runs the job, and always writes a result.

    spark-submit … spark_jobs/<kind>.py <path of step.json>

Next to the step are ``driver.json`` (written first: host, process ids, start time) and ``result.json`` (written last,
atomically). Exit status: 0 done, also where single tables failed; 75 retry; 65, 70, 78 by error class; 143 stopped by a
signal. A job that dies before its result leaves none: the task that submitted it then reads the state of the target.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import SECRETS_FILE, ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.spark_application import application_name, history_url
from airflow_cdc_provider.core.decisions.steps import Step, StepResult
from airflow_cdc_provider.core.errors import StepFailed
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.staging.open_store import open_log, open_store
from airflow_cdc_provider.staging.store import Store
from spark_jobs.runtime.cluster_checks import require_shared_folders
from spark_jobs.runtime.console import log_line, log_trace
from spark_jobs.runtime.failures import exit_code_of, problem_of, scrub
from spark_jobs.runtime.job import Job, Phases, timed
from spark_jobs.runtime.object_stores import configure_object_stores
from spark_jobs.runtime.sessions import Application, build_session, master_of

STOPPED = 143
PARENT_CHECK_S = 1.0

Run = Callable[[Job], StepResult]


def main(run: Run) -> None:
    """Run a job in a process of its own; does not return."""
    signal.signal(signal.SIGTERM, _stop)
    _exit_with_parent()
    step = read_step(sys.argv[1])

    def stoppable(job: Job) -> StepResult:
        signal.signal(signal.SIGINT, _stop)  # Spark's start installs a handler that waits for jobs
        return run(job)

    sys.exit(execute(step, stoppable))


def read_step(url: str) -> Step:
    """The step file. On an object store, reading it requires the secrets of the job."""
    secrets = Path(os.environ.get(SECRETS_FILE, ""))
    staging = _secrets_in(secrets.read_text()).staging if secrets.is_file() else ConnectionInfo()
    folder, _, name = url.rpartition("/")
    return from_plain(Step, json.loads(open_store(folder, staging).read(name)))


def execute(step: Step, run: Run, conf: dict[str, str] | None = None) -> int:
    """Run a step in this process and write its result. Returns the exit status."""
    secrets = Secrets()
    phases: dict[str, float] = {}
    application: Application | None = None
    try:
        secrets = take_secrets(step.secrets_path)
        _write_file(step, secrets, "driver.json", _driver())
        application = Application(partial(_start, step, secrets, phases, conf), partial(master_of, conf or {}))
        job = Job(step, secrets, application, phases)
        result = run(job)
        peaks = _peaks(application.started, job.peak_memory_bytes)
        result = replace(result, phases=dict(phases), peak_memory_bytes=peaks)
        code = 0
    # Every error must be in the result file: the worker decides by it.
    except Exception as error:
        log_trace(scrub(traceback.format_exc(), secrets))
        problem, code = problem_of(error, secrets), exit_code_of(error)
        retryable = bool(getattr(error, "retryable", True))
        result = StepResult(step.kind, step.attempt, problem=problem, retryable=retryable, phases=dict(phases))
        log_line(str(problem))
    if application is not None and isinstance(application.started, SparkSession):
        identifier, url = _find_application(application.started)
        result = replace(result, application=identifier, history_url=url)
    failpoint("result.before")
    _write_file(step, secrets, "result.json", to_plain(result))
    failpoint("result.after")
    log_line(f"{step.kind}: exit {code}; " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items()))
    return code


def _start(step: Step, secrets: Secrets, phases: Phases, conf: dict[str, str] | None) -> SparkSession:
    with timed(phases, "start"):
        name = application_name(step.definition.name, step.kind, step.attempt)
        spark = build_session(name, _target_types(step.definition), conf)
        page = spark.sparkContext.uiWebUrl
        shown = f"; its UI while it runs: {page}" if page else ""
        log_line(f"Spark application {spark.sparkContext.applicationId}, {name}{shown}")
        configure_object_stores(spark, step.definition, secrets)
        require_shared_folders(
            spark.sparkContext, step.definition, _store(step, secrets).url(f"{step.folder}/driver.json")
        )
        return spark


def _find_application(spark: SparkSession) -> tuple[str, str]:
    """Its id, and its page in the history server."""
    identifier = str(spark.sparkContext.applicationId)
    return identifier, history_url(spark.sparkContext.getConf().get, identifier)


def _target_types(definition: Definition) -> list[str]:
    return [target.type for target in definition.all_targets]


def take_secrets(path: str) -> Secrets:
    """Read the secrets file and delete it. Raises StepFailed (JOB002) where it does not exist: its attempt is over."""
    try:
        content = Path(path).read_text()
    except FileNotFoundError:
        raise StepFailed.of(
            "JOB002",
            "the secrets file of this job does not exist",
            where=path,
            do="start the task again: a secrets file is read once",
        ) from None
    os.unlink(path)
    return _secrets_in(content)


def _secrets_in(content: str) -> Secrets:
    return from_plain(Secrets, json.loads(content))


def _write_file(step: Step, secrets: Secrets, name: str, body: object) -> None:
    _store(step, secrets).write(f"{step.folder}/{name}", json.dumps(body, indent=1).encode())


def _store(step: Step, secrets: Secrets) -> Store:
    return open_log(step.definition, secrets.staging).store


def _driver() -> dict[str, object]:
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "jvm_pid": _java_parent(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _java_parent() -> int | None:
    """The JVM of ``spark-submit``; None where this process was started in another way."""
    try:
        name = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    except OSError:
        return None
    return os.getppid() if name == "java" else None


def _stop(number: int, frame: FrameType | None) -> None:
    """Exit at once; the JVM exits with its Python."""
    log_line(f"stopped by signal {number}")
    os._exit(STOPPED)


def _exit_with_parent() -> None:
    """Exit with the JVM: without it a driver only holds connections."""
    parent = _java_parent()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_S)
        os._exit(STOPPED)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def _peaks(spark: SparkSession | Exception | None, measured: dict[str, int]) -> dict[str, int]:
    """The value of the heap is an upper bound: its pools peak at different times."""
    python = {"python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **measured}
    if not isinstance(spark, SparkSession):
        return python
    jvm = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    pools = jvm.management.ManagementFactory.getMemoryPoolMXBeans()
    heap = sum(int(pool.getPeakUsage().getUsed()) for pool in pools if pool.getType().toString() == "Heap memory")
    return {"jvm_heap": min(heap, int(jvm.Runtime.getRuntime().maxMemory())), **python}
