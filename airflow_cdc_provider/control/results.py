"""What the Spark steps of a run said, by table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord, token
from airflow_cdc_provider.staging.run_files import RunFiles

TASKS = ("snapshot", "extract", "stage", "merge", "reconcile.resync", "reconcile.replay", "verify")
COMMITS = frozenset({"snapshot", "merge", "reconcile.resync", "reconcile.replay"})
WRITING = COMMITS | {"verify"}
"""Verify brings tables up to the position it compares at; the window it names is that, whether or not it committed."""
TROUBLE = (Outcome.FAILING, Outcome.BLOCKED)


@dataclass(frozen=True)
class Results:
    """``steps``: task id → the newest result of that task, in the order of the road."""

    steps: dict[str, StepResult]

    def of_table(self, table: str, tasks: Iterable[str] = TASKS) -> list[TableResult]:
        steps = (self.steps[task] for task in TASKS if task in self.steps and task in tasks)
        return [result for step in steps for result in step.tables if result.table == table]

    def writing(self, table: str) -> list[TableResult]:
        return self.of_table(table, WRITING)

    def touched(self, table: str) -> bool:
        """Some step of the run may have moved the table."""
        return any(result.outcome is not Outcome.UNCHANGED for result in self.writing(table))

    @property
    def landed_all(self) -> bool:
        """The window reached as far as the source had been asked about, or none was needed."""
        window = self.steps["extract"].window if "extract" in self.steps else None
        return window is None or window.cut in ("", "limit")

    def committed(self) -> set[str]:
        """Tables whose data a step of this run changed."""
        steps = (self.steps[task] for task in WRITING if task in self.steps)
        return {r.table for step in steps for r in step.tables if r.outcome is Outcome.DONE and any(r.counts.values())}

    def problems(self) -> dict[str, tuple[Outcome, Problem]]:
        """The trouble of each table that has some: a blocking one before one that a retry cures."""
        found: dict[str, tuple[Outcome, Problem]] = {}
        for task in TASKS:
            for result in self.steps[task].tables if task in self.steps else ():
                if result.outcome not in TROUBLE or found.get(result.table, ("",))[0] is Outcome.BLOCKED:
                    continue
                what = Problem("RUN004", f"{task} of {result.table} gave no reason", where=result.table)
                found[result.table] = (result.outcome, result.problem or what)
        return found

    def of_step(self, task_id: str) -> Problem:
        """Why a task failed."""
        result = self.steps.get(task_id)
        if result and result.problem:
            return result.problem
        return Problem("RUN005", f"{task_id} failed", where=task_id, do=f"see the log of {task_id}")

    def unproved(self, table: str, control: ControlRecord | None) -> Problem | None:
        """A commit that a step reported must be in the target, or below what stands there now."""
        for result in self.of_table(table, COMMITS):
            if result.outcome is not Outcome.DONE or result.fence is None or result.window is None:
                continue
            if control is None or control.token < token(result.fence, result.window):
                return Problem(
                    "RUN006",
                    f"the commit to {table} that a step reported is not in the target",
                    where=table,
                    found=f"fence {control.fence}, window {control.window}" if control else "no control record",
                    allowed=f"fence {result.fence}, window {result.window} or later",
                    do="find out who restored or replaced the table; the next run decides from what stands there",
                )
        return None

    def phases(self) -> dict[str, dict[str, float]]:
        return {task: dict(result.phases) for task, result in self.steps.items()}


def results_of(run: RunFiles) -> Results:
    steps = {}
    for task in TASKS:
        latest = run.latest(task)
        if latest is not None:
            steps[task] = latest[1]
    return Results(steps)
