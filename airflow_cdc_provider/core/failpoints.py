"""Named places where a fault test makes a process fail. Harmless elsewhere: an environment variable alone arms nothing.

    CDC_FAILPOINTS       name=action[@nth][;name=action[@nth]…]     @nth: fire at the nth passage, by default the first
    CDC_FAILPOINT_TOKEN  a file that must exist; the failpoint that fires removes it, so that the retry passes

| action | what happens |
|---|---|
| kill9 | SIGKILL to this process |
| kill9:jvm | SIGKILL to the JVM that started this process, then to this process |
| stop:FILE | wait until FILE exists |
| raise:CLASS | raise that error class of ``core.errors`` |
| sleep:SECONDS | wait |
| enospc | raise "no space left on device" |
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections import Counter
from pathlib import Path
from threading import Lock

from airflow_cdc_provider.core import errors

ARMED = "CDC_FAILPOINTS"
TOKEN = "CDC_FAILPOINT_TOKEN"

_passages: Counter[tuple[str, str]] = Counter()
_lock = Lock()


def failpoint(name: str) -> None:
    """Do what the test has ordered for this place; nothing in production."""
    text = os.environ.get(ARMED)
    if not text:
        return
    for order in text.split(";"):
        place, _, action = order.partition("=")
        if place == name:
            action, _, nth = action.partition("@")
            with _lock:
                passage = (os.environ.get(TOKEN, ""), order)
                _passages[passage] += 1
                fires = _passages[passage] == int(nth or 1) and _take_token()
            if fires:
                _act(name, action)


def _take_token() -> bool:
    try:
        os.unlink(os.environ.get(TOKEN, ""))
    except FileNotFoundError:
        return False
    return True


def _act(name: str, action: str) -> None:
    verb, _, argument = action.partition(":")
    match verb:
        case "kill9":
            if argument == "jvm":
                _kill_java(os.getppid())
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            while not Path(argument).exists():
                time.sleep(0.05)
        case "raise":
            raise getattr(errors, argument)(errors.Problem("FLT001", f"failpoint {name}"))
        case "sleep":
            time.sleep(float(argument))
        case "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case _:
            raise ValueError(f"failpoint {name}: unknown action {action!r}")


def _kill_java(pid: int) -> None:
    if Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        raise ValueError(f"failpoint: process {pid} is no JVM")
    os.kill(pid, signal.SIGKILL)
