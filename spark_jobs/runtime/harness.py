"""Around every job: read the step, start Spark, run, and always leave a result.

    spark-submit … spark_jobs/<kind>.py <path of step.json>

Beside the step stand ``driver.json`` (written first: host, process ids, start) and ``result.json`` (written last, all
at once). Exit status: 0 done, also where single tables failed; 75 try again; 65, 70, 78 as the error class says; 143
stopped by a signal. A job that dies before its result leaves none: then whoever submitted it knows nothing of its
effects and asks the target.
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
from airflow_cdc_provider.core.decisions.steps import Step, StepResult
from airflow_cdc_provider.core.errors import Problem, StepFailed
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.staging.open_store import open_log, open_store
from airflow_cdc_provider.staging.store import Store
from spark_jobs.runtime.cluster_checks import require_shared
from spark_jobs.runtime.console import explain, say
from spark_jobs.runtime.failures import exit_code_of, problem_of, scrub
from spark_jobs.runtime.job import Job, Phases, timed
from spark_jobs.runtime.s3a import reach_buckets
from spark_jobs.runtime.sessions import Application, build, master_of

STOPPED = 143
PARENT_CHECK_S = 1.0

Run = Callable[[Job], StepResult]


def main(run: Run) -> None:
    """Run a job as a process of its own; does not return."""
    signal.signal(signal.SIGTERM, _stop)
    _follow_parent()
    step = read_step(sys.argv[1])

    def stoppable(job: Job) -> StepResult:
        signal.signal(signal.SIGINT, _stop)  # starting Spark has put its own handler there, which waits for jobs
        return run(job)

    sys.exit(execute(step, stoppable))


def read_step(url: str) -> Step:
    """The step file. On an object store it takes the job's own secrets to read it."""
    secrets = Path(os.environ.get(SECRETS_FILE, ""))
    staging = _secrets_in(secrets.read_text()).staging if secrets.is_file() else ConnectionInfo()
    folder, _, name = url.rpartition("/")
    return from_plain(Step, json.loads(open_store(folder, staging).read(name)))


def execute(step: Step, run: Run, conf: dict[str, str] | None = None) -> int:
    """Run a step in this process and write its result. Returns the exit status."""
    secrets = Secrets()
    phases: dict[str, float] = {}
    try:
        secrets = take_secrets(step.secrets_path)
        _leave(step, secrets, "driver.json", _driver())
        application = Application(partial(_start, step, secrets, phases, conf), partial(master_of, conf or {}))
        job = Job(step, secrets, application, phases)
        result = run(job)
        peaks = _peaks(application.started, job.peak_memory_bytes)
        result = replace(result, phases=dict(phases), peak_memory_bytes=peaks)
        code = 0
    # Whatever happened has to stand in the result file: the worker that reads it decides by it.
    except Exception as error:
        explain(scrub(traceback.format_exc(), secrets))
        problem, code = problem_of(error, secrets), exit_code_of(error)
        retryable = bool(getattr(error, "retryable", True))
        result = StepResult(step.kind, step.attempt, problem=problem, retryable=retryable, phases=dict(phases))
        say(str(problem))
    failpoint("result.before")
    _leave(step, secrets, "result.json", to_plain(result))
    failpoint("result.after")
    say(f"{step.kind}: exit {code}; " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items()))
    return code


def _start(step: Step, secrets: Secrets, phases: Phases, conf: dict[str, str] | None) -> SparkSession:
    with timed(phases, "start"):
        spark = build(f"cdc-{step.definition.name}-{step.kind}", step.definition.target.type, conf)
        reach_buckets(spark, step.definition, secrets)
        require_shared(spark.sparkContext, step.definition, _store(step, secrets).url(f"{step.folder}/driver.json"))
        return spark


def take_secrets(path: str) -> Secrets:
    """Read the secrets file and delete it. Raises StepFailed (JOB002) where it is gone: its attempt is over."""
    try:
        content = Path(path).read_text()
    except FileNotFoundError:
        raise StepFailed(
            Problem(
                "JOB002",
                "the secrets of this job are gone",
                where=path,
                do="start the task again; a secrets file is read once",
            )
        ) from None
    os.unlink(path)
    return _secrets_in(content)


def _secrets_in(content: str) -> Secrets:
    return from_plain(Secrets, json.loads(content))


def _leave(step: Step, secrets: Secrets, name: str, body: object) -> None:
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
    """The JVM that ``spark-submit`` became; None where this process was started otherwise."""
    try:
        name = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    except OSError:
        return None
    return os.getppid() if name == "java" else None


def _stop(number: int, frame: FrameType | None) -> None:
    """End at once; the JVM ends with its Python."""
    say(f"stopped by signal {number}")
    os._exit(STOPPED)


def _follow_parent() -> None:
    """Die with the JVM: a driver without it can do nothing but hold connections."""
    parent = _java_parent()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_S)
        os._exit(STOPPED)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def _peaks(spark: SparkSession | Exception | None, measured: dict[str, int]) -> dict[str, int]:
    """The heap's figure is an upper bound: its pools have their peaks at different times."""
    python = {"python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **measured}
    if not isinstance(spark, SparkSession):
        return python
    jvm = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    pools = jvm.management.ManagementFactory.getMemoryPoolMXBeans()
    heap = sum(int(pool.getPeakUsage().getUsed()) for pool in pools if pool.getType().toString() == "Heap memory")
    return {"jvm_heap": min(heap, int(jvm.Runtime.getRuntime().maxMemory())), **python}
