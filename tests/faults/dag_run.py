"""A run of the DAG of a replicator, task by task, as Airflow runs it: branches, retries, skips, failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.errors import CdcError, Fenced
from tests.faults import attempts
from tests.faults.injection import Injection, NotReached
from tests.faults.system import SystemUnderTest
from tests.faults.worker import Arguments, run_task

TRIES = 3
_numbers = itertools.count(1)


@dataclass
class DagRun:
    """One run. ``injections`` go into the first try of their tasks; ``after`` is called after a task with an injection,
    ``between`` before each task. ``states``: task → success, skipped, failed. ``leave_out``: tasks that fail at once,
    as if their cluster were not available. ``interval``: of a backfill, UTC in ISO 8601 format."""

    system: SystemUnderTest
    injections: Sequence[Injection] = ()
    after: Callable[[Injection], object] = lambda _: None
    between: Callable[[str], object] = lambda _: None
    leave_out: Sequence[str] = ()
    interval: tuple[str, str] | None = None
    states: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run_id = f"manual__{next(_numbers):06d}"

    def execute(self) -> DagRun:
        decision = self._task("open_window", {"interval": self.interval} if self.interval else {})
        if isinstance(decision, RunDecision) and decision.stop is None:
            self._branches(decision)
        failed = sorted(task for task, state in self.states.items() if state == "failed")
        closing = self._task("close_window", {"failed": failed})
        if closing is not None:
            self.problems += map(str, closing.problems)
        return self

    @property
    def green(self) -> bool:
        return "failed" not in self.states.values() and not self.problems

    def _branches(self, decision: RunDecision) -> None:
        follow = set(decision.follow)
        if "snapshot" in follow:
            self._spark("snapshot")
        if "verify" in follow:
            self._spark("verify")
        paused: Any = None
        if "extract" in follow:
            self._spark("extract")
        streamed = self.states.get("extract", "success") != "failed" and follow & {"extract", "stage"}
        if streamed:
            self._spark("stage")
            if self.states["stage"] == "success":
                self._spark("merge")
            if "failed" not in (self.states["stage"], self.states.get("merge")):
                paused = self._task("find_holes")
        if "reconcile.pause_stream" in follow or paused:
            self._reconcile()

    def _reconcile(self) -> None:
        paused = self._task("reconcile.pause_stream")
        if not paused:
            return
        for task in ("reconcile.resync", "reconcile.replay"):
            self._spark(task)
            if self.states[task] == "failed":
                return
        self._task("reconcile.resume_stream")

    def _spark(self, task: str) -> None:
        def attempt(number: int) -> object:
            return attempts.result_of(self.system, self.run_id, task, number)

        self._run_task(task, attempt, {"number": 1})

    def _task(self, task: str, arguments: Arguments | None = None) -> Any:
        def attempt(number: int) -> object:
            return run_task(self.system.replicator(), task, self.run_id, arguments or {})

        return self._run_task(task, attempt, arguments or {})

    def _run_task(self, task: str, attempt: Callable[[int], object], arguments: Arguments) -> Any:
        """The answer of the successful try; None where there is none."""
        self.between(task)
        injection = next((one for one in self.injections if one.task == task and not one.done), None)
        try:
            return self._try(task, attempt, arguments, injection)
        finally:
            if injection is not None and injection.done:
                self.after(injection)

    def _try(
        self, task: str, attempt: Callable[[int], object], arguments: Arguments, injection: Injection | None
    ) -> Any:
        if task in self.leave_out:
            self.states[task] = "failed"
            return None
        for number in range(1, TRIES + 1):
            try:
                if injection is not None and not injection.done:
                    injection.inject(self.run_id, arguments, lambda: attempt(1))
                    if injection.in_own_process:
                        continue
                answer = attempt(number)
                self.states[task] = "success"
                return answer
            except NotReached:
                if len(self.injections) == 1:
                    raise
                assert injection is not None
                injection.missed = True  # another injection of this run left the task nothing to do
            except (Fenced, AirflowSkipException) as error:
                self.states[task] = "skipped"
                self.problems += [] if isinstance(error, AirflowSkipException) else [f"{task}: {error}"]
                return None
            except CdcError as error:
                if number == TRIES or not error.retryable:
                    self.problems.append(f"{task} try {number}: {error}")
                    break
            # Airflow tries again after any error of a task.
            except Exception as error:
                if number == TRIES:
                    self.problems.append(f"{task} try {number}: {type(error).__name__}: {error}")
        self.states[task] = "failed"
        return None
