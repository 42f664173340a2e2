"""Finds and kills processes of a run on a real Airflow, and clears its tasks as a user does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from tests.scenario import Scenario

APPEARS_LIMIT_S = 600


def runs_task(scenario: Scenario, runs: Sequence[str], task: str) -> str:
    """Wait until the driver of a task is up in one of these runs; that run."""
    end = time.monotonic() + APPEARS_LIMIT_S
    while time.monotonic() < end:
        for run in runs:
            if (_folder(scenario, run, task, 1) / "driver.json").exists():
                return run
        time.sleep(0.05)
    raise TimeoutError(f"no driver of {task} in {runs}")


def driver_of(scenario: Scenario, run: str, task: str) -> dict[str, int]:
    """Wait until the driver of a task is up: ``jvm_pid`` and ``pid`` of its two processes."""
    runs_task(scenario, [run], task)
    found: dict[str, int] = json.loads((_folder(scenario, run, task, 1) / "driver.json").read_text())
    return found


def kill_driver(scenario: Scenario, run: str, task: str, after_s: float) -> None:
    """SIGKILL the JVM and the Python driver of a task, some time after the driver came up."""
    driver = driver_of(scenario, run, task)
    time.sleep(after_s)
    kill(driver["jvm_pid"])
    kill(driver["pid"])


def kill_task(scenario: Scenario, run: str, task: str, after_s: float) -> None:
    """SIGKILL the Airflow task process and leave its driver running."""
    driver = driver_of(scenario, run, task)
    time.sleep(after_s)
    kill(parent_of(driver["jvm_pid"]))


def clear(scenario: Scenario, run: str, task: str) -> None:
    """Clears a task and its downstream tasks, running or finished."""
    body = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "only_failed": False, "include_downstream": True}
    scenario.airflow.request("POST", f"/dags/{scenario.name}/clearTaskInstances", json=body)


@contextlib.contextmanager
def kill_scheduler(airflow: EmbeddedAirflow) -> Iterator[None]:
    """SIGKILL to the scheduler; its workers continue. Another scheduler runs until the end of the block at least."""
    found = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if _is_scheduler(path, airflow)]
    assert found, "no scheduler to kill"
    for folder in found:
        kill(int(folder.name))
    with (airflow.home / "scheduler.log").open("ab") as log:
        started = subprocess.Popen(
            [airflow.python, "-m", "airflow", "scheduler"],
            env=airflow.environment,
            cwd=airflow.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    SCHEDULERS.append(started)
    yield


SCHEDULERS: list[subprocess.Popen[bytes]] = []
"""Replacements of killed schedulers; the layer ends them."""


def end_schedulers() -> None:
    while SCHEDULERS:
        started = SCHEDULERS.pop()
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def parent_of(pid: int) -> int:
    """1, the parent of orphans, where the process does not exist."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 1
    return int(status.rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    if pid > 1:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _folder(scenario: Scenario, run: str, task: str, attempt: int) -> Path:
    owners = Path(scenario.staging, scenario.name, "steps").glob("owner=*")
    return next(owners, Path("no run yet")) / quote(run, safe="") / task / str(attempt)


def _is_scheduler(cmdline: Path, airflow: EmbeddedAirflow) -> bool:
    """Whether it is a scheduler of this Airflow: its environment names the home."""
    try:
        words = cmdline.read_bytes().split(b"\0")
        environment = (cmdline.parent / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"scheduler" in words and f"AIRFLOW_HOME={airflow.home}".encode() in environment
