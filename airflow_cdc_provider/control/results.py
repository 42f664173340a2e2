"""The results of a run's Spark steps, by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.control_record import ControlRecord, token
from airflow_cdc_provider.core.table.questions import Question
from airflow_cdc_provider.staging.run_files import RunFiles

TASKS = ("snapshot", "extract", "stage", "merge", "reconcile.resync", "reconcile.replay", "verify")
COMMITTING_TASKS = frozenset({"snapshot", "merge", "reconcile.resync", "reconcile.replay"})
WRITING_TASKS = COMMITTING_TASKS | {"verify"}
"""Verify also applies changes up to the position of the comparison. Its result names that window even without a
commit."""
PROBLEM_OUTCOMES = (Outcome.FAILING, Outcome.BLOCKED)


@dataclass(frozen=True)
class Failure:
    """``read``: the control record of the table from which the step began, None if there was none."""

    outcome: Outcome
    problem: Problem
    read: ControlRecord | None


@dataclass(frozen=True)
class Results:
    """``steps``: task id → the newest result of that task, in the order of ``TASKS``. ``inputs``: task id → the step of
    that result, or the newest step if none has a result. ``actors``: whom commits of this run name as their attempt.
    ``failed``: the tasks that failed, of which an earlier attempt may have a result."""

    steps: dict[str, StepResult] = field(default_factory=dict)
    inputs: dict[str, Step] = field(default_factory=dict)
    actors: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    def of_table(self, table: str, tasks: Iterable[str] = TASKS) -> list[TableResult]:
        steps = (self.steps[task] for task in TASKS if task in self.steps and task in tasks)
        return [result for step in steps for result in step.tables if result.table == table]

    def of_writing_steps(self, table: str) -> list[TableResult]:
        return self.of_table(table, WRITING_TASKS)

    def counts(self, table: str) -> Counter[str]:
        """Rows that the run wrote, by operation."""
        counts = Counter[str]()
        for result in self.of_writing_steps(table):
            counts.update(result.counts)
        return counts

    def touched(self, table: str, fence: int | None) -> bool:
        """Whether a step of the run may have committed to the table, which had ``fence`` before."""
        raised = any(result.fence not in (None, fence) for result in self.of_table(table))
        return raised or any(result.outcome is not Outcome.UNCHANGED for result in self.of_writing_steps(table))

    def question(self, table: str) -> Question | None:
        """What the table waits for since this run."""
        return next((result.question for result in self.of_table(table) if result.question), None)

    @property
    def has_compared(self) -> bool:
        """One that failed proves nothing, whatever is left of it."""
        return self.has_ended("verify")

    def has_ended(self, task_id: str) -> bool:
        """Whether a task has left a result and did not fail."""
        step = self.steps.get(task_id)
        return step is not None and step.problem is None and task_id not in self.failed

    def has_skipped(self, task_id: str) -> bool:
        """Whether a task neither failed nor left a result."""
        return task_id not in self.steps and task_id not in self.failed

    def decided(self, table: str) -> dict[str, str]:
        """Bad record → the decision by which the run applied or discarded it."""
        return {record: one for result in self.of_table(table) for record, one in result.decided.items()}

    def comparison(self, table: str) -> TableResult | None:
        return next(iter(self.of_table(table, ("verify",))), None) if self.has_compared else None

    def committed(self) -> set[str]:
        """Tables whose data a step of this run changed."""
        steps = (self.steps[task] for task in WRITING_TASKS if task in self.steps)
        return {result.table for step in steps for result in step.tables if _has_written(result)}

    def has_reported(self, table: str) -> bool:
        """Whether a step says what it has written, which may be nothing."""
        return any(one.outcome is Outcome.DONE and not one.found for one in self.of_writing_steps(table))

    def problems(self, planned: Mapping[str, TableTask]) -> dict[str, Failure]:
        """Table → its problem. A blocking problem takes precedence over a retryable one. ``planned``: the tables of the
        run."""
        by_table: dict[str, Failure] = {}
        for task in TASKS:
            for result in self.steps[task].tables if task in self.steps else ():
                before = by_table.get(result.table)
                if result.outcome not in PROBLEM_OUTCOMES or (before and before.outcome is Outcome.BLOCKED):
                    continue
                missing_reason = Problem(
                    "RUN004", f"{task} of {result.table} failed without a reason", where=result.table
                )
                read = self.read_by(task, result.table, planned)
                by_table[result.table] = Failure(result.outcome, result.problem or missing_reason, read)
        return by_table

    def read_by(self, task_id: str, table: str, planned: Mapping[str, TableTask]) -> ControlRecord | None:
        """The control record of a table from which a step began: that of its input, else of the plan."""
        step = self.inputs.get(task_id)
        inputs = {task.table: task for task in step.tables} if step else {}
        task = inputs.get(table) or planned.get(table)
        return task.control if task else None

    def is_history(self, read: ControlRecord | None, now: ControlRecord | None) -> bool:
        """Whether another process has committed to a table since this run read it, so that what the run found out about
        the table need not be so any more: an operator resumed it, or a later run copied it again."""
        if now is None or now.attempt in self.actors:
            return False
        return read is None or (now.nonce, now.token) != (read.nonce, read.token)

    def step_problem(self, task_id: str) -> Problem:
        """Why a task failed."""
        result = self.steps.get(task_id)
        if result and result.problem:
            return result.problem
        return Problem("RUN005", f"{task_id} failed", where=task_id, do=f"see the log of {task_id}")

    def missing_commit(self, table: str, control: ControlRecord | None) -> Problem | None:
        """The problem if a commit that a step reported is neither the target's current commit nor an earlier one."""
        for result in self.of_table(table, COMMITTING_TASKS):
            if result.outcome is not Outcome.DONE or result.fence is None or result.window is None:
                continue
            if control is None or control.token < token(result.fence, result.window):
                return Problem(
                    "RUN006",
                    f"a step reported a commit to {table} that the target does not have",
                    where=table,
                    found=f"fence {control.fence}, window {control.window}" if control else "no control record",
                    allowed=f"fence {result.fence}, window {result.window} or later",
                    do="find out what restored or replaced the table; the next run starts from its current state",
                )
        return None

    def phases(self) -> Iterator[tuple[str, str, dict[str, float]]]:
        """Task id, table, and seconds by phase; the table is empty for the phases of a whole job."""
        for task, step in self.steps.items():
            yield task, "", step.phases
            for result in step.tables:
                yield task, result.table, result.phases


def _has_written(result: TableResult) -> bool:
    """A copy of an empty table has, too: it removed what the table had before."""
    counts = result.counts
    return result.outcome is Outcome.DONE and (result.found or Operation.READ in counts or any(counts.values()))


def read_results(run: RunFiles, opening: str, failed: Iterable[str] = ()) -> Results:
    """Of one opening of the run. ``failed``: its failed tasks."""
    steps, inputs = dict[str, StepResult](), dict[str, Step]()
    actors = {run.run_id, *(f"{run.run_id} {task}" for task in TASKS)}
    for task in TASKS:
        submissions = list(run.of_opening(task, opening))
        actors |= {step.attempt for step, _ in submissions}
        finished = [(step, result) for step, result in submissions if result is not None]
        if submissions:
            inputs[task] = (finished or submissions)[0][0]
        if finished:
            steps[task] = finished[0][1]
    return Results(steps, inputs, frozenset(actors), frozenset(failed))
