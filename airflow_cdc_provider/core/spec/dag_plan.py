"""The plan of a replicator's DAG: tasks, dependencies, schedule and pools. ``factory`` builds the Airflow DAG from it.

                   ┌► snapshot ──────────────────────────────────────────────────────┐
    open_window ───┼► extract ─► stage ─► merge ─► find_holes ───────────────────────┼► close_window
                   ├► reconcile[ pause_stream ─► resync ─► replay ─► resume_stream ] ─┤
                   └► verify ────────────────────────────────────────────────────────┘

If a policy of the definition asks an operator, ``find_questions ─► ask`` runs between ``find_holes``, or
``open_window``, and ``close_window``: ``ask`` starts a run of a second DAG for each question, which waits for the
answer. The run itself does not wait. ``emit_asset_events`` follows a ``close_window`` that failed.

``open_window`` may choose any of its branches, and ``stage`` directly; ``find_holes`` may choose ``pause_stream``. A
task that joins branches runs if none of them failed and at least one succeeded. ``close_window`` always runs. A Spark
task that skips itself does not skip ``pause_stream``, which then skips itself, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.decisions.listed_tables import on_new_table
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.selection import is_pattern
from airflow_cdc_provider.core.spec.table_policy import OnNewTable
from airflow_cdc_provider.core.spec.verification import OnDifference
from airflow_cdc_provider.core.table.copies import DEFAULT_TARGET, target_of_copy

RECONCILE = "reconcile"
MAX_RETRY_DELAY_S = 600.0
MAX_ACTIVE_RUNS = 2
"""One run per lane: the stream continues during a copy of several hours."""


class TaskKind(StrEnum):
    OPEN_WINDOW = "open_window"
    SPARK = "spark"
    FIND_HOLES = "find_holes"
    PAUSE_STREAM = "pause_stream"
    RESUME_STREAM = "resume_stream"
    FIND_QUESTIONS = "find_questions"
    ASK = "ask"
    CLOSE_WINDOW = "close_window"
    EMIT_ASSET_EVENTS = "emit_asset_events"


class Trigger(StrEnum):
    """The trigger rules of Airflow that are used. A branch that is not chosen counts as skipped."""

    ALL_SUCCESS = "all_success"
    ANY_BRANCH = "none_failed_min_one_success"
    ALWAYS = "all_done"
    AFTER_FAILURE = "one_failed"


@dataclass(frozen=True)
class TaskPlan:
    """``id`` includes the group. ``step``: set for Spark tasks. ``after``: upstream tasks. ``max_active``: the limit of
    active task instances over all runs of the DAG, including backfills. ``teardown``: its own result does not count for
    that of the run, and it is cleared with the task before it."""

    id: str
    kind: TaskKind
    doc: str
    after: tuple[str, ...] = ()
    step: str = ""
    trigger: Trigger = Trigger.ALL_SUCCESS
    retries: int = 0
    pool: str = ""
    max_active: int | None = None
    teardown: bool = False

    @property
    def group(self) -> str:
        return self.id.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.id.rpartition(".")[2]


TAG, REPLICATOR_TAG = "cdc", "cdc-replicator"
"""Of all DAGs of this provider, and of those that copy."""


@dataclass(frozen=True)
class DagPlan:
    """``assets``: an update of any of them starts a run, in addition to the schedule. ``asset_alias``: the alias under
    which events of the tables that changed are emitted."""

    dag_id: str
    description: str
    schedule: str | None
    assets: tuple[str, ...]
    owner: str
    tags: tuple[str, ...]
    max_active_runs: int
    retry_delay_s: float
    max_retry_delay_s: float
    asset_alias: str
    tasks: tuple[TaskPlan, ...]


def plan(definition: Definition) -> DagPlan:
    dag = definition.dag
    return DagPlan(
        dag_id=definition.name,
        description=f"copies of {definition.source.type} tables in {_types(definition)}, kept exact",
        schedule=definition.schedule,
        assets=definition.triggered_by,
        owner=dag.owner,
        tags=tuple(sorted({TAG, REPLICATOR_TAG, *dag.tags})),
        max_active_runs=MAX_ACTIVE_RUNS,
        retry_delay_s=dag.retry_delay.total_seconds(),
        max_retry_delay_s=max(MAX_RETRY_DELAY_S, dag.retry_delay.total_seconds()),
        asset_alias=asset_alias(definition.name),
        tasks=tuple(
            replace(task, retries=dag.retries, pool=dag.pool if task.step else "")
            for task in (_with_questions(TASKS) if asks(definition) else TASKS)
        ),
    )


def _types(definition: Definition) -> str:
    return " and ".join(dict.fromkeys(target.type for target in definition.all_targets))


def asks(definition: Definition) -> bool:
    """Whether an operator may be asked: about a schema change, a new table, or rows that differ from the source."""
    policies = [rule.schema_changes.over(definition.schema_changes) for rule in definition.tables]
    new = [on_new_table(definition, rule) for rule in definition.tables if is_pattern(rule.source)]
    differences = definition.verify.repair is OnDifference.ASK
    return differences or OnNewTable.ASK in new or any(policy.asks for policy in policies)


def questions_dag_id(replicator: str) -> str:
    return f"{replicator}_questions"


def _with_questions(tasks: Iterable[TaskPlan]) -> tuple[TaskPlan, ...]:
    *others, close, emit = tasks
    return (*others, *QUESTION_TASKS, replace(close, after=(*close.after, QUESTION_TASKS[-1].id)), emit)


def asset_alias(replicator: str) -> str:
    return f"cdc/{replicator}"


def asset_name(replicator: str, copy: str, target_table: str) -> str:
    """``copy``: the name of the copy that the table is."""
    target = target_of_copy(copy)
    return "/".join(("cdc", replicator, *(() if target == DEFAULT_TARGET else (target,)), target_table))


def asset_uri(definition: Definition, copy: str, target_table: str) -> str:
    """The location of the table as a URI; the asset's name if the target has only a catalog."""
    location = definition.target_named(target_of_copy(copy)).location.rstrip("/")
    if not location:
        return asset_name(definition.name, copy, target_table)
    return f"{'' if '://' in location else 'file://'}{location}/{target_table}"


def _spark(step: StepKind, doc: str, *after: str, group: str = "", trigger: Trigger = Trigger.ALL_SUCCESS) -> TaskPlan:
    return TaskPlan(
        f"{group}.{step}" if group else step.value, TaskKind.SPARK, doc, after, step.value, trigger, max_active=1
    )


TASKS = (
    TaskPlan(
        "open_window",
        TaskKind.OPEN_WINDOW,
        "Asks the source for new changes, reads the cursors of the targets, and chooses the branches of the run. "
        "If there are no new and no unapplied changes, no Spark job starts.",
    ),
    _spark(StepKind.SNAPSHOT, "First full copy of every pending table.", "open_window"),
    _spark(StepKind.EXTRACT, "Writes the next window of the source's stream to the change log.", "open_window"),
    _spark(
        StepKind.STAGE,
        "Builds one batch per table from the changes after the table's cursor.",
        "open_window",
        "extract",
        trigger=Trigger.ANY_BRANCH,
    ),
    _spark(StepKind.MERGE, "Merges the batches. Data and cursor of a table are one commit.", "stage"),
    TaskPlan(
        "find_holes",
        TaskKind.FIND_HOLES,
        "Finds tables that have reached a hole in the change log, and schedules another copy of them.",
        ("stage", "merge"),
        trigger=Trigger.ANY_BRANCH,
    ),
    TaskPlan(
        f"{RECONCILE}.pause_stream",
        TaskKind.PAUSE_STREAM,
        "Fences the tables that are copied again: they accept no stream commits until they are resumed.",
        ("open_window", "find_holes"),
        trigger=Trigger.ANY_BRANCH,
    ),
    _spark(
        StepKind.RESYNC, "Copies the tables again, from a new anchor.", f"{RECONCILE}.pause_stream", group=RECONCILE
    ),
    _spark(StepKind.REPLAY, "Applies the change log after the anchor.", f"{RECONCILE}.resync", group=RECONCILE),
    TaskPlan(
        f"{RECONCILE}.resume_stream",
        TaskKind.RESUME_STREAM,
        "Allows stream commits to the tables again.",
        (f"{RECONCILE}.replay",),
    ),
    _spark(
        StepKind.VERIFY, "Compares source and target at one position, row by row and column by column.", "open_window"
    ),
    TaskPlan(
        "close_window",
        TaskKind.CLOSE_WINDOW,
        "Checks that the cursors moved, acknowledges at the source what every table has applied, and cleans up. Always "
        "runs; fails if a table is failing or blocked.",
        ("open_window", "snapshot", "find_holes", f"{RECONCILE}.resume_stream", "verify"),
        trigger=Trigger.ALWAYS,
    ),
    TaskPlan(
        "emit_asset_events",
        TaskKind.EMIT_ASSET_EVENTS,
        "Updates the assets of the tables that a failed run has changed. If the run succeeds, close_window does.",
        ("close_window",),
        trigger=Trigger.AFTER_FAILURE,
        teardown=True,
    ),
)

FIND_QUESTIONS = "find_questions"
QUESTION_TASKS = (
    TaskPlan(
        FIND_QUESTIONS,
        TaskKind.FIND_QUESTIONS,
        "Finds the questions that have no answer.",
        ("open_window", "find_holes", "verify"),
        trigger=Trigger.ANY_BRANCH,
    ),
    TaskPlan(
        "ask",
        TaskKind.ASK,
        "Starts a run of the questions DAG for each question, which waits for the answer. A question that was asked "
        "before is left out.",
        (FIND_QUESTIONS,),
    ),
)
