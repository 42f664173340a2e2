"""A run of the replicator's DAG, task by task, as Airflow would take it: roads, retries, skips, failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.errors import CdcError, Fenced
from tests.faults import attempts
from tests.faults.strike import NotStruck, Strike
from tests.faults.worker import Told, carry
from tests.faults.world import World

TRIES = 3
_numbers = itertools.count(1)


@dataclass
class Road:
    """One run. ``strikes`` hit the first try of their tasks; ``after`` is called when a struck task is over and
    ``between`` before each. ``states``: task → success, skipped, failed. ``leave_out``: tasks that fail at once, as if
    their cluster were away."""

    world: World
    strikes: Sequence[Strike] = ()
    after: Callable[[Strike], object] = lambda _: None
    between: Callable[[str], object] = lambda _: None
    leave_out: Sequence[str] = ()
    states: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run_id = f"manual__{next(_numbers):06d}"

    def go(self) -> Road:
        decision = self._task("open_window")
        if isinstance(decision, RunDecision) and decision.stop is None:
            self._roads(decision)
        failed = sorted(task for task, state in self.states.items() if state == "failed")
        closing = self._task("close_window", {"failed": failed})
        if closing is not None:
            self.said += map(str, closing.problems)
        return self

    @property
    def green(self) -> bool:
        return "failed" not in self.states.values() and not self.said

    def _roads(self, decision: RunDecision) -> None:
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
        def again(number: int) -> object:
            return attempts.result_of(self.world, self.run_id, task, number)

        self._tried(task, again, {"number": 1})

    def _task(self, task: str, told: Told | None = None) -> Any:
        def again(number: int) -> object:
            return carry(self.world.replicator(), task, self.run_id, told or {})

        return self._tried(task, again, told or {})

    def _tried(self, task: str, again: Callable[[int], object], told: Told) -> Any:
        """The answer of the try that went well; None where none did."""
        self.between(task)
        strike = next((one for one in self.strikes if one.task == task and not one.done), None)
        try:
            return self._told(task, again, told, strike)
        finally:
            if strike is not None and strike.done:
                self.after(strike)

    def _told(self, task: str, again: Callable[[int], object], told: Told, strike: Strike | None) -> Any:
        if task in self.leave_out:
            self.states[task] = "failed"
            return None
        for number in range(1, TRIES + 1):
            try:
                if strike is not None and not strike.done:
                    strike.hit(self.run_id, told, lambda: again(1))
                    if strike.dies:
                        continue
                answer = again(number)
                self.states[task] = "success"
                return answer
            except NotStruck:
                if len(self.strikes) == 1:
                    raise
                assert strike is not None
                strike.missed = True  # what was done elsewhere in this run left nothing to do here
            except (Fenced, AirflowSkipException) as error:
                self.states[task] = "skipped"
                self.said += [] if isinstance(error, AirflowSkipException) else [f"{task}: {error}"]
                return None
            except CdcError as error:
                if number == TRIES or not error.retryable:
                    self.said.append(f"{task} try {number}: {error}")
                    break
            # Airflow tries again whatever a task raises.
            except Exception as error:
                if number == TRIES:
                    self.said.append(f"{task} try {number}: {type(error).__name__}: {error}")
        self.states[task] = "failed"
        return None
