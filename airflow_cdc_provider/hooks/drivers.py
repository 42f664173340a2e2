"""Spark drivers on this worker, found by their command line, which ends with the path of the step file.

This is true for the launching shell, the JVM and the Python driver, from their start on, and needs no pid file.
(Executors and Python workers exit when their driver's JVM exits.)
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
STEP_FILE = "step.json"


def process_space() -> str:
    """An identifier of the worker's process table: equal for two workers only if they see the same processes. Empty if
    the system has none (not Linux); then the end of an attempt cannot be seen from its processes."""
    try:
        boot = Path(PROC, "sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def running(folder_url: str) -> dict[str, list[int]]:
    """Step file → pids, for all submissions whose step file is below this folder."""
    pids_by_step: dict[str, list[int]] = {}
    for pid, arguments in _processes():
        if _is_submission(arguments, folder_url):
            pids_by_step.setdefault(arguments[-1], []).append(pid)
    return pids_by_step


def end(step_url: str, timeout_s: float = 30.0) -> bool:
    """SIGKILL every process of a submission and wait until none is left. False if some are left after the timeout."""
    folder = step_url.removesuffix(STEP_FILE)
    deadline = time.monotonic() + timeout_s
    while pids := running(folder).get(step_url):
        if time.monotonic() > deadline:
            return False
        for pid in pids:
            _kill(pid)
        time.sleep(0.05)
    return True


def _processes() -> Iterator[tuple[int, list[str]]]:
    if not PROC.is_dir():
        return
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            try:
                content = Path(entry.path, "cmdline").read_bytes()
            except OSError:  # the process has ended
                continue
            yield int(entry.name), content.decode(errors="replace").rstrip("\0").split("\0")


def _is_submission(arguments: list[str], folder_url: str) -> bool:
    """``… spark_jobs/<kind>.py <step file>``; not an editor or a pager on the step file."""
    return (
        len(arguments) > 2
        and arguments[-1].startswith(folder_url)
        and arguments[-1].endswith(f"/{STEP_FILE}")
        and Path(arguments[-2]).parent.name == "spark_jobs"
    )


def _kill(pid: int) -> None:
    """Kill the process, or its group if it leads one: children may lack the step file in their command line. The caller
    checks again whether the process has ended."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
