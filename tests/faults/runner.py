"""Runs groups of cases, many one after the other on one system, and checks each."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import attempts
from tests.faults.checker.invariants import Finding
from tests.faults.dag_run import DagRun
from tests.faults.grouping import CaseGroup
from tests.faults.injection import Injection
from tests.faults.matrix import Case
from tests.faults.servers import Servers
from tests.faults.system import SystemUnderTest, new_name
from tests.faults.workloads import WORKLOADS

GROUPS_PER_SYSTEM = 10
MOST_RUNS = 5


@dataclass(frozen=True)
class Outcome:
    """``findings`` of the whole group; empty is a success. ``ended``: for each case that was injected, how a thawed
    attempt ended. A case that was not reached is in neither."""

    seconds: float
    findings: tuple[str, ...]
    ended: tuple[tuple[Case, str], ...]


class FaultRunner:
    """Runs on one system, which is replaced after some groups, after a failure, for another target, and where a
    workload needs a new one. An active Spark session is required."""

    def __init__(self, folder: Path, servers: Servers, seed: int) -> None:
        self.folder = folder
        self.servers = servers
        self.seed = seed
        self.system: SystemUnderTest | None = None
        self.unsettled: list[str] = []
        self._groups = 0
        self._stack = contextlib.ExitStack()
        self._running = contextlib.ExitStack()

    def __enter__(self) -> FaultRunner:
        self._stack.enter_context(attempts.operating(lambda _: self._current().secrets))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._stack.close()

    def run(self, group: CaseGroup) -> Outcome:
        started = time.monotonic()
        injections: list[Injection] = []
        try:
            found = self._run(group, injections)
        # A group that ends with any error has failed; the others follow.
        except Exception as error:
            found = [f"{type(error).__name__}: {error}", traceback.format_exc()]
        finally:
            for injection in injections:
                injection.discard()
        if found:
            self.leave()
        done = tuple(
            (injection.case, injection.ended) for injection in injections if injection.done and not injection.missed
        )
        return Outcome(time.monotonic() - started, tuple(found), done)

    def _run(self, group: CaseGroup, injections: list[Injection]) -> list[str]:
        attempts.worker.set(attempts.LOCAL)
        attempts.hidden.clear()
        self._groups += 1
        system = self.system_for(
            group.target, group.workload == "first" or self._groups > GROUPS_PER_SYSTEM, group.workload != "first"
        )
        injections += [Injection(case, task, system) for task, case in group.cases]
        found: list[str] = []

        def after(injection: Injection) -> None:
            found.extend(f"after {injection.case}: {one}" for one in system.checker.check())

        def run_dag(between: Callable[[str], object]) -> DagRun:
            of_runs = [] if WORKLOADS[group.workload].series else injections
            return DagRun(system, of_runs, after, between).execute()

        system.writer.use_two_tables()
        last = WORKLOADS[group.workload].execute(system, injections, run_dag)
        problems = [] if last is not None and last.green else run_until_caught_up(system)
        found += map(str, thaw_all(system, injections))
        found += map(str, system.checker.check())
        if len(group.cases) == 1:
            found += findings_at_rest(system)
        return [*found, *problems]

    def close(self) -> None:
        """Every table of the system must catch up; tables that do not are in ``unsettled``."""
        if self.system is not None:
            self.unsettled += findings_at_rest(self.system)
        self.leave()

    def leave(self) -> None:
        """Removes the system without a check."""
        self.system = None
        self._running.close()

    def _current(self) -> SystemUnderTest:
        assert self.system is not None
        return self.system

    def system_for(self, target: str, fresh: bool = False, begun: bool = True) -> SystemUnderTest:
        """A running system with this target. ``fresh``: a new one. ``begun``: its tables are copied."""
        if self.system is not None and (fresh or self.system.kind != target):
            self.close()
        if self.system is None:
            self._groups = 1
            name = new_name()
            folder = self.folder / name
            folder.mkdir()
            self._running = contextlib.ExitStack()
            system = SystemUnderTest(name, folder, target, self.servers, self.seed)
            self._running.enter_context(system.running())
            self.system = system
            if begun and (problems := run_until_caught_up(system)):
                raise AssertionError(f"the first copies failed: {problems}")
        return self.system


def run_until_caught_up(system: SystemUnderTest) -> list[str]:
    """Runs without injections until one has no problem. Returns the problems of the last one."""
    for _ in range(MOST_RUNS):
        dag_run = DagRun(system).execute()
        if dag_run.green:
            return []
    return [f"no run is green: {dag_run.states} {dag_run.problems}"]


def findings_at_rest(system: SystemUnderTest) -> list[str]:
    """The findings when no run is left to do. A first copy leaves its log to the next run, and a thawed attempt may
    have written old states to the index: a run corrects both."""
    problems = run_until_caught_up(system) if system.checker.check_at_rest() else []
    return [*map(str, (*system.checker.check(), *system.checker.check_at_rest())), *problems]


def thaw_all(system: SystemUnderTest, injections: list[Injection]) -> Iterator[Finding]:
    """Other attempts have finished the steps: a thawed attempt must commit nothing."""
    if not any(injection.frozen for injection in injections):
        return
    before = {table: {one.number for one in found} for table, found in system.checker.read_commits().items()}
    for injection in injections:
        injection.thaw()
    for table, found in system.checker.read_commits().items():
        for one in found:
            if (
                one.number not in before.get(table, ())
                and one.record is not None
                and not _cleans(one.record, injections)
            ):
                by = f"{one.record['attempt']}: {', '.join(injection.ended for injection in injections)}"
                yield Finding("a thawed attempt commits nothing", table, by)


def _cleans(record: Mapping[str, Any], injections: Iterable[Injection]) -> bool:
    """The cleaning moves cursors over windows without changes of their tables, which is correct at any time."""
    return record["attempt"] in [injection.run_id for injection in injections if injection.case.step == "clean"]
