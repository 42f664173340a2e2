"""Spark drivers on this worker: a submission is known by its command line, which ends with the path of its step file.

This holds for the launching shell, the JVM and the Python driver alike, and from the first moment on; no file of pids
has to be right. (Executors and Python workers end by themselves when their driver's JVM is gone.)
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
    """The process table this worker sees, as text equal for two workers only where they see the same one. Empty where
    the system does not tell (no Linux): then no attempt's end can be seen from its processes."""
    try:
        boot = Path(PROC, "sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def running(folder_url: str) -> dict[str, list[int]]:
    """Step file → pids, for all submissions whose step file is under this folder."""
    found: dict[str, list[int]] = {}
    for pid, arguments in _processes():
        if _is_submission(arguments, folder_url):
            found.setdefault(arguments[-1], []).append(pid)
    return found


def end(step_url: str, timeout_s: float = 30.0) -> bool:
    """SIGKILL every process of a submission and wait until none is left. False where some survive the timeout."""
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
            except OSError:  # ended meanwhile
                continue
            yield int(entry.name), content.decode(errors="replace").rstrip("\0").split("\0")


def _is_submission(arguments: list[str], folder_url: str) -> bool:
    """``… spark_jobs/<kind>.py <step file>``: an editor or a pager on the step file is none."""
    return (
        len(arguments) > 2
        and arguments[-1].startswith(folder_url)
        and arguments[-1].endswith(f"/{STEP_FILE}")
        and Path(arguments[-2]).parent.name == "spark_jobs"
    )


def _kill(pid: int) -> None:
    """The whole group where the process leads one: its children may not show the step file. A process that has ended,
    or that we may not kill, shows in the next look at who is left."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
