"""The injection of one case into one task: arm the failpoint, wait until it fires, thaw a frozen attempt, see its
end."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path

from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks import drivers
from tests.faults import attempts
from tests.faults.matrix import (
    DRIVERS,
    FREEZE,
    KILL,
    KILL_JVM,
    LATE_KILL,
    LOST_ANSWER,
    LOST_REQUEST,
    Case,
    lost_answer_error,
)
from tests.faults.system import SystemUnderTest
from tests.faults.targets import HasSessions, KeepsSessions
from tests.faults.worker import Arguments, TaskCall

FIRES_LIMIT_S = 180
FREEZE_TRIES = 5
ENDS_LIMIT_S = 60
"""A thawed attempt has to end within this time."""

LATE_S = 0.5


class NotReached(AssertionError):
    """The failpoint was not reached: the workload does not fit the case."""


@dataclass
class Injection:
    """Injects ``case`` into the first try of ``task``. ``missed``: that did not reach the failpoint. ``ended``: how a
    frozen attempt ended after the thaw."""

    case: Case
    task: str
    system: SystemUnderTest
    done: bool = False
    missed: bool = False
    ended: str = ""
    run_id: str = ""
    _frozen_attempt: FrozenAttempt | None = field(default=None)

    def __post_init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="cdc-token-")
        os.close(handle)
        self.token = Path(name)

    @property
    def environment(self) -> dict[str, str]:
        case = self.case
        action = {
            KILL_JVM: KILL_JVM,
            LATE_KILL: f"{KILL_JVM}:{LATE_S}",
            LOST_REQUEST: f"raise:{lost_answer_error(case.failpoint, case.target)}",
            LOST_ANSWER: f"raise:{lost_answer_error(case.failpoint, case.target)}",
        }.get(case.action, case.action)
        return {ARMED: f"{case.failpoint.name}={action}@{case.failpoint.nth}", TOKEN: str(self.token)}

    @property
    def fired(self) -> bool:
        return not self.token.exists()

    @property
    def frozen(self) -> bool:
        return self._frozen_attempt is not None

    @property
    def error(self) -> type[BaseException]:
        """The error that a lost answer raises at this failpoint."""
        module, _, name = lost_answer_error(self.case.failpoint, self.case.target).rpartition(".")
        found: type[BaseException] = getattr(importlib.import_module(module), name) if module else CdcError
        return found

    @property
    def is_driver(self) -> bool:
        return self.case.step in DRIVERS

    @property
    def in_own_process(self) -> bool:
        """Whether the fault needs a process of its own; a lost answer is injected in this process."""
        return self.case.action in (KILL, KILL_JVM, LATE_KILL, FREEZE) or self.case.failpoint.name == "extract.write"

    def inject(self, run_id: str, arguments: Arguments, warm: Callable[[], object]) -> None:
        """The first try. Raises the error of the try, a CdcError or another; returns where it succeeded or is
        frozen."""
        arguments = arguments | {"worker": attempts.LOCAL}
        self.done, self.run_id = True, run_id
        if self.case.action == FREEZE:
            self._frozen_attempt = self._freeze(run_id, arguments)
            return
        try:
            if not self.in_own_process:
                with self._armed():
                    warm()
            elif self.is_driver:
                with _set(self.environment):
                    warm()
            else:
                end(process(self.system, self.task, run_id, arguments, self.environment))
        except Exception as error:
            if self.fired:
                self._forget_clients()
                raise
            raise self.not_reached() from error
        if not self.fired:
            raise self.not_reached()

    def _forget_clients(self) -> None:
        if isinstance(target := self.system.target, KeepsSessions):
            target.forget_clients()

    def _freeze(self, run_id: str, arguments: Arguments) -> FrozenAttempt:
        """An attempt frozen without a lock on the catalog: a commit of another table in the same attempt may hold the
        lock on the file of the catalog, which would block every reader, also the checker, until the thaw."""
        for _ in range(FREEZE_TRIES):
            attempt = FrozenAttempt(self, run_id, arguments)
            if not self.system.is_locked():
                return attempt
            attempt.kill()
            self.token.touch()
        raise self.not_reached()

    def not_reached(self) -> NotReached:
        self.token.unlink()
        return NotReached(f"{self.case}: failpoint not reached")

    def thaw(self) -> None:
        """Continues the frozen attempt and waits for its end."""
        if self._frozen_attempt is not None:
            self.ended = self._frozen_attempt.thaw()
            self._frozen_attempt = None

    def discard(self) -> None:
        """Ends every process of the injection, also after an error."""
        self.token.unlink(missing_ok=True)
        if self._frozen_attempt is not None:
            self._frozen_attempt.kill()

    @contextlib.contextmanager
    def _armed(self) -> Iterator[None]:
        os.environ.update(self.environment)
        try:
            yield
        finally:
            del os.environ[ARMED], os.environ[TOKEN]


class FrozenAttempt:
    """An attempt whose processes are stopped at the failpoint."""

    def __init__(self, injection: Injection, run_id: str, arguments: Arguments) -> None:
        self._injection = injection
        self._pids: list[int] = []
        self._outcome = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        if injection.is_driver:
            self._attempt = attempts.make_attempt(injection.system, run_id, injection.task, 1)
            context = copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._work,), name="frozen", daemon=True)
            self._thread.start()
        else:
            arguments = arguments | {"worker": attempts.REMOTE}
            self._process = process(injection.system, injection.task, run_id, arguments, injection.environment)
        self._wait_until_frozen()

    def thaw(self) -> str:
        for pid in self._pids:
            _signal(pid, signal.SIGCONT)
        if self._process is not None:
            self._outcome = f"exit code {self._process.wait(ENDS_LIMIT_S)}"
        if self._thread is not None:
            self._thread.join(ENDS_LIMIT_S)
            if self._thread.is_alive():
                self.kill()
                raise AssertionError(f"{self._injection.case}: a thawed driver did not end within {ENDS_LIMIT_S} s")
        return self._outcome

    def kill(self) -> None:
        for pid in self._pids:
            _signal(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _work(self) -> None:
        attempts.armed.set(self._injection.environment)
        attempts.worker.set(attempts.REMOTE)
        try:
            result = self._attempt.result()
            self._outcome = ", ".join(f"{one.table} {one.outcome}" for one in result.tables) or "done"
        except CdcError as error:
            self._outcome = f"{type(error).__name__}: {error.problems[0].code}"
        # The outcome of the case shows any error.
        except Exception as error:
            self._outcome = f"{type(error).__name__}: {error}"

    def _wait_until_frozen(self) -> None:
        """Stops the process whose failpoint fired, its JVM and every other process of the driver."""
        injection, end = self._injection, time.monotonic() + FIRES_LIMIT_S
        while not injection.fired:
            over = self._thread is not None and not self._thread.is_alive()
            over |= self._process is not None and self._process.poll() is not None
            if over or time.monotonic() > end:
                self._pids = self._all_pids()
                self.kill()
                injection.token.unlink(missing_ok=True)
                raise NotReached(f"{injection.case} failpoint not reached: {self._outcome}")
            time.sleep(0.02)
        time.sleep(0.1)
        self._pids = self._all_pids()
        for pid in self._pids:
            _signal(pid, signal.SIGSTOP)
        if injection.is_driver and self._attempt.folder is not None:
            attempts.hidden.add(self._attempt.folder.step_url)
        if isinstance(target := injection.system.target, HasSessions):
            time.sleep(1.5)
            for pid in self._pids:
                target.end_sessions_of(pid)

    def _all_pids(self) -> list[int]:
        if self._process is not None:
            return [self._process.pid]
        folder = self._attempt.folder
        found = drivers.running(folder.url).get(folder.step_url, []) if folder is not None else []
        return sorted({*found, *_below(found)})


def process(
    system: SystemUnderTest, task: str, run_id: str, arguments: Arguments, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """A task in a worker, as a process of its own."""
    call = TaskCall(system.definition, system.secrets, system.state_url, task, run_id, arguments)
    handle, path = tempfile.mkstemp(prefix="cdc-call-")  # 0600
    with os.fdopen(handle, "w") as file:
        json.dump(to_plain(call), file)
    outputs = system.folder / "outputs"
    outputs.mkdir(exist_ok=True)
    with (outputs / f"{task}-{run_id}").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.worker", path],
            cwd=Path(__file__).parents[2],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def end(started: subprocess.Popen[bytes]) -> None:
    code = started.wait(FIRES_LIMIT_S)
    if code:
        raise Died(f"the task's process ended with {code}")


class Died(Exception):
    """The process of a task has died."""


@contextlib.contextmanager
def _set(environment: dict[str, str]) -> Iterator[None]:
    before = attempts.armed.set(environment)
    try:
        yield
    finally:
        attempts.armed.reset(before)


def _below(pids: list[int]) -> set[int]:
    """Every descendant process of these: the command lines of Spark's Python workers do not name the step."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in {*pids, *found}} - found:
        found |= more
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
