"""What is done to one task at one place: arm it, see it happen, wake what was stopped and see it end."""

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
from tests.faults.matrix import DRIVERS, EFFECT, FREEZE, KILL, KILL_JVM, LATE_KILL, NO_EFFECT, Case, loss
from tests.faults.worker import Order, Told
from tests.faults.world import World

FIRES_LIMIT_S = 180
STOPS = 5
ENDS_LIMIT_S = 60
"""A woken attempt finds out by itself, and ends."""

LATE_S = 0.5


class NotStruck(AssertionError):
    """The place was not passed: the scene is wrong, or the place."""


@dataclass
class Strike:
    """``case`` is done to the first try of ``task``. ``missed``: that did not pass the place. ``ended``: how what was
    stopped ended after it was woken."""

    case: Case
    task: str
    world: World
    done: bool = False
    missed: bool = False
    ended: str = ""
    run_id: str = ""
    _zombie: Zombie | None = field(default=None)

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
            NO_EFFECT: f"raise:{loss(case.place, case.target)}",
            EFFECT: f"raise:{loss(case.place, case.target)}",
        }.get(case.action, case.action)
        return {ARMED: f"{case.place.name}={action}@{case.place.nth}", TOKEN: str(self.token)}

    @property
    def fired(self) -> bool:
        return not self.token.exists()

    @property
    def stopped(self) -> bool:
        return self._zombie is not None

    @property
    def loss(self) -> type[BaseException]:
        """The error by which a lost answer shows here."""
        module, _, name = loss(self.case.place, self.case.target).rpartition(".")
        found: type[BaseException] = getattr(importlib.import_module(module), name) if module else CdcError
        return found

    @property
    def is_driver(self) -> bool:
        return self.case.step in DRIVERS

    @property
    def dies(self) -> bool:
        """The struck one is a process of its own; a lost answer harms nobody else."""
        return self.case.action in (KILL, KILL_JVM, LATE_KILL, FREEZE) or self.case.place.name == "extract.write"

    def hit(self, run_id: str, told: Told, warm: Callable[[], object]) -> None:
        """The first try. Raises what it raises, CdcError or another; returns where it ended well or stands still."""
        told = told | {"worker": attempts.HERE}
        self.done, self.run_id = True, run_id
        if self.case.action == FREEZE:
            self._zombie = self._stopped(run_id, told)
            return
        try:
            if not self.dies:
                with self._armed():
                    warm()
            elif self.is_driver:
                with _set(self.environment):
                    warm()
            else:
                end(process(self.world, self.task, run_id, told, self.environment))
        except Exception as error:
            if self.fired:
                raise
            raise self.not_passed() from error
        if not self.fired:
            raise self.not_passed()

    def _stopped(self, run_id: str, told: Told) -> Zombie:
        """One that stands where it keeps nobody from looking: another table's commit in it may hold a catalog's file,
        and nobody, the checker neither, could do anything before it is woken."""
        for _ in range(STOPS):
            zombie = Zombie(self, run_id, told)
            if not self.world.is_locked():
                return zombie
            zombie.kill()
            self.token.touch()
        raise self.not_passed()

    def not_passed(self) -> NotStruck:
        self.token.unlink()
        return NotStruck(f"{self.case} was not passed")

    def wake(self) -> None:
        """Let what was stopped go on, and wait for its end."""
        if self._zombie is not None:
            self.ended = self._zombie.wake()
            self._zombie = None

    def forget(self) -> None:
        """Whatever went wrong, nothing of it may live on."""
        self.token.unlink(missing_ok=True)
        if self._zombie is not None:
            self._zombie.kill()

    @contextlib.contextmanager
    def _armed(self) -> Iterator[None]:
        os.environ.update(self.environment)
        try:
            yield
        finally:
            del os.environ[ARMED], os.environ[TOKEN]


class Zombie:
    """An attempt that was stopped."""

    def __init__(self, strike: Strike, run_id: str, told: Told) -> None:
        self._strike = strike
        self._pids: list[int] = []
        self._outcome = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        if strike.is_driver:
            self._attempt = attempts.make_attempt(strike.world, run_id, strike.task, 1)
            context = copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._work,), name="stopped", daemon=True)
            self._thread.start()
        else:
            told = told | {"worker": attempts.ELSEWHERE}
            self._process = process(strike.world, strike.task, run_id, told, strike.environment)
        self._wait_until_stopped()

    def wake(self) -> str:
        for pid in self._pids:
            _signal(pid, signal.SIGCONT)
        if self._process is not None:
            self._outcome = f"exit code {self._process.wait(ENDS_LIMIT_S)}"
        if self._thread is not None:
            self._thread.join(ENDS_LIMIT_S)
            if self._thread.is_alive():
                self.kill()
                raise AssertionError(f"{self._strike.case}: a woken driver did not end within {ENDS_LIMIT_S} s")
        return self._outcome

    def kill(self) -> None:
        for pid in self._pids:
            _signal(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _work(self) -> None:
        attempts.armed.set(self._strike.environment)
        attempts.worker.set(attempts.ELSEWHERE)
        try:
            result = self._attempt.result()
            self._outcome = ", ".join(f"{one.table} {one.outcome}" for one in result.tables) or "done"
        except CdcError as error:
            self._outcome = f"{type(error).__name__}: {error.problems[0].code}"
        # However it ends, the case says so.
        except Exception as error:
            self._outcome = f"{type(error).__name__}: {error}"

    def _wait_until_stopped(self) -> None:
        """The one that fired, its JVM and whatever else belongs to the driver stand still."""
        strike, end = self._strike, time.monotonic() + FIRES_LIMIT_S
        while not strike.fired:
            over = self._thread is not None and not self._thread.is_alive()
            over |= self._process is not None and self._process.poll() is not None
            if over or time.monotonic() > end:
                self._pids = self._all_pids()
                self.kill()
                strike.token.unlink(missing_ok=True)
                raise NotStruck(f"{strike.case} was not passed: {self._outcome}")
            time.sleep(0.02)
        time.sleep(0.1)
        self._pids = self._all_pids()
        for pid in self._pids:
            _signal(pid, signal.SIGSTOP)
        if strike.is_driver and self._attempt.folder is not None:
            attempts.hidden.add(self._attempt.folder.step_url)
        if strike.world.kind in ("postgres", "mysql"):
            time.sleep(1.5)
            for pid in self._pids:
                strike.world.end_sessions_of(pid)

    def _all_pids(self) -> list[int]:
        if self._process is not None:
            return [self._process.pid]
        folder = self._attempt.folder
        found = drivers.running(folder.url).get(folder.step_url, []) if folder is not None else []
        return sorted({*found, *_below(found)})


def process(world: World, task: str, run_id: str, told: Told, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A worker's task as a process of its own."""
    order = Order(world.definition, world.secrets, world.state_url, task, run_id, told)
    handle, path = tempfile.mkstemp(prefix="cdc-order-")  # 0600
    with os.fdopen(handle, "w") as file:
        json.dump(to_plain(order), file)
    outputs = world.folder / "outputs"
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
    """The process of a task is gone."""


@contextlib.contextmanager
def _set(environment: dict[str, str]) -> Iterator[None]:
    before = attempts.armed.set(environment)
    try:
        yield
    finally:
        attempts.armed.reset(before)


def _below(pids: list[int]) -> set[int]:
    """Every process that comes from these: Spark's Python workers do not show what they are for."""
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
