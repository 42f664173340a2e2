"""The actions of ``airflow_cdc_provider.core.failpoints`` in fault tests. Without this module an environment variable
has no effect.

    CDC_FAILPOINTS       name=action[@nth][;name=action[@nth]…]     @nth: fire at the nth passage, by default the first
    CDC_FAILPOINT_TOKEN  a file that must exist; the failpoint that fires removes it, so that the retry passes

| action | effect |
|---|---|
| kill9 | SIGKILL to this process; its JVM, if it has one, runs until it detects that |
| kill9:jvm | SIGKILL to the JVM above this process; this process runs until it detects that |
| kill9:jvm:SECONDS | the same, after these seconds |
| freeze | SIGSTOP to the JVM above this process, where there is one, and to this process |
| stop:FILE | wait until FILE exists |
| raise:CLASS | raise this class, of ``core.errors`` or ``module.Class``, as a library does after a lost answer |
| sleep:SECONDS | wait |
| enospc | raise "no space left on device" |

``tests/faults/matrix.py`` explains each failpoint.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import time
from collections import Counter
from pathlib import Path
from threading import Lock, Timer

from airflow_cdc_provider.core import errors

ARMED = "CDC_FAILPOINTS"
TOKEN = "CDC_FAILPOINT_TOKEN"

FREEZE_S = 0.5

_passages: Counter[tuple[str, str]] = Counter()
_lock = Lock()


def inject(name: str) -> None:
    """Runs the action that the test has set for this failpoint."""
    text = os.environ.get(ARMED)
    if not text:
        return
    for setting in text.split(";"):
        failpoint, _, action = setting.partition("=")
        if failpoint == name:
            action, _, nth = action.partition("@")
            with _lock:
                passage = (os.environ.get(TOKEN, ""), setting)
                _passages[passage] += 1
                fires = _passages[passage] == int(nth or 1) and _take_token()
            if fires:
                _run(name, action)


def _take_token() -> bool:
    try:
        os.unlink(os.environ.get(TOKEN, ""))
    except FileNotFoundError:
        return False
    return True


def _run(name: str, action: str) -> None:
    verb, _, argument = action.partition(":")
    match verb:
        case "kill9" if argument:
            java, later = _java_above(os.getpid()), argument.partition(":")[2]
            if java is None:
                raise ValueError(f"failpoint {name}: no JVM above this process")
            if later:
                Timer(float(later), os.kill, (java, signal.SIGKILL)).start()
            else:
                os.kill(java, signal.SIGKILL)
        case "kill9":
            os.kill(os.getpid(), signal.SIGKILL)
        case "freeze":
            for pid in filter(None, (_java_above(os.getpid()), os.getpid())):
                os.kill(pid, signal.SIGSTOP)
            time.sleep(FREEZE_S)  # a process with many threads does not stop at once
        case "stop":
            while not Path(argument).exists():
                time.sleep(0.05)
        case "raise":
            raise _error(argument, name)
        case "sleep":
            time.sleep(float(argument))
        case "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case _:
            raise ValueError(f"failpoint {name}: unknown action {action!r}")


def _error(kind: str, name: str) -> BaseException:
    module, _, of_library = kind.rpartition(".")
    if not module:
        ours: BaseException = getattr(errors, kind)(errors.Problem("FLT001", f"failpoint {name}"))
        return ours
    found: BaseException = getattr(importlib.import_module(module), of_library)(f"failpoint {name}")
    return found


def _java_above(pid: int) -> int | None:
    """The nearest JVM among the parents of a process."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid > 1 and Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            return pid
    return None
