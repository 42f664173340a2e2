"""Find and kill what a run has started."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from urllib.parse import quote

from tests.scenario import Scenario

APPEARS_LIMIT_S = 120


def driver_of(scenario: Scenario, run: str, task: str, attempt: int = 1) -> dict[str, int]:
    """Wait until the driver of a task is up: ``jvm_pid`` and ``pid`` of its two processes."""
    folder = Path(scenario.staging, scenario.name, "steps", quote(run, safe=""), task, str(attempt))
    end = time.monotonic() + APPEARS_LIMIT_S
    while time.monotonic() < end:
        driver = folder / "driver.json"
        if driver.exists():
            found: dict[str, int] = json.loads(driver.read_text())
            return found
        time.sleep(0.05)
    raise TimeoutError(f"no driver of {task} in {folder}")


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


def parent_of(pid: int) -> int:
    """1, the parent of orphans, where the process is gone."""
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
