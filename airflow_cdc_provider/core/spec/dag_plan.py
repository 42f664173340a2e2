"""A definition as a DAG on paper: tasks, edges, how often and where. ``factory`` makes the Airflow DAG of it.

                   ┌► snapshot ──────────────────────────────────────────────────────┐
    open_window ───┼► extract ─► stage ─► merge ─► find_holes ───────────────────────┼► close_window
                   ├► reconcile[ pause_stream ─► resync ─► replay ─► resume_stream ] ─┤
                   └► verify ────────────────────────────────────────────────────────┘

``open_window`` may follow any of its roads, also straight to ``stage``; ``find_holes`` may go on to ``pause_stream``.
A task that joins roads runs when none of them failed and one was taken. ``close_window`` always runs. Where a Spark
task skips itself because there is nothing to do, ``pause_stream`` is reached without anybody having asked for it: it
skips itself then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import Definition

RECONCILE = "reconcile"
MAX_RETRY_DELAY_S = 600.0
MAX_ACTIVE_RUNS = 2
"""One run for each lane: a copy may take hours while the stream goes on."""


class TaskKind(StrEnum):
    OPEN_WINDOW = "open_window"
    SPARK = "spark"
    FIND_HOLES = "find_holes"
    PAUSE_STREAM = "pause_stream"
    RESUME_STREAM = "resume_stream"
    CLOSE_WINDOW = "close_window"


class Trigger(StrEnum):
    """Airflow's trigger rules, as far as they are used. A branch that is not taken counts as skipped."""

    ALL_SUCCESS = "all_success"
    ANY_ROAD = "none_failed_min_one_success"
    ALWAYS = "all_done"


@dataclass(frozen=True)
class TaskPlan:
    """``id`` with its group; ``step`` for Spark tasks; ``after``: the tasks before it. ``max_active`` counts over all
    runs of the DAG, backfills too."""

    id: str
    kind: TaskKind
    doc: str
    after: tuple[str, ...] = ()
    step: str = ""
    trigger: Trigger = Trigger.ALL_SUCCESS
    retries: int = 0
    pool: str = ""
    max_active: int | None = None

    @property
    def group(self) -> str:
        return self.id.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.id.rpartition(".")[2]


@dataclass(frozen=True)
class DagPlan:
    """``assets``: an update of any of them begins a run, besides the schedule. ``asset_alias``: under this name
    ``close_window`` reports the tables that changed, and only those."""

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
        description=f"copies of {definition.source.type} tables in {definition.target.type}, kept exact",
        schedule=definition.schedule,
        assets=definition.triggered_by,
        owner=dag.owner,
        tags=tuple(sorted({"cdc", *dag.tags})),
        max_active_runs=MAX_ACTIVE_RUNS,
        retry_delay_s=dag.retry_delay.total_seconds(),
        max_retry_delay_s=max(MAX_RETRY_DELAY_S, dag.retry_delay.total_seconds()),
        asset_alias=asset_alias(definition.name),
        tasks=tuple(replace(task, retries=dag.retries, pool=dag.pool if task.step else "") for task in TASKS),
    )


def asset_alias(replicator: str) -> str:
    return f"cdc/{replicator}"


def asset_name(replicator: str, target_table: str) -> str:
    return f"cdc/{replicator}/{target_table}"


def asset_uri(definition: Definition, target_table: str) -> str:
    """Where the table lives, as a URI; the asset's name where the target is known by catalog only."""
    location = definition.target.location.rstrip("/")
    if not location:
        return asset_name(definition.name, target_table)
    return f"{'' if '://' in location else 'file://'}{location}/{target_table}"


def _spark(step: StepKind, doc: str, *after: str, group: str = "", trigger: Trigger = Trigger.ALL_SUCCESS) -> TaskPlan:
    return TaskPlan(
        f"{group}.{step}" if group else step.value, TaskKind.SPARK, doc, after, step.value, trigger, max_active=1
    )


TASKS = (
    TaskPlan(
        "open_window",
        TaskKind.OPEN_WINDOW,
        "Asks the source whether anything is new and the targets where they stand, and decides which roads to take. "
        "Nothing new and nobody behind: no Spark job starts.",
    ),
    _spark(StepKind.SNAPSHOT, "First full copy of every pending table.", "open_window"),
    _spark(StepKind.EXTRACT, "Lands the next window of the source's stream in the change log.", "open_window"),
    _spark(
        StepKind.STAGE,
        "Makes one merge-ready batch per table of what the change log holds after the table's cursor.",
        "open_window",
        "extract",
        trigger=Trigger.ANY_ROAD,
    ),
    _spark(StepKind.MERGE, "Merges the batches; data and cursor change in one commit per table.", "stage"),
    TaskPlan(
        "find_holes",
        TaskKind.FIND_HOLES,
        "Looks whether a table met something the stream will not tell, and sends it to be copied again.",
        ("stage", "merge"),
        trigger=Trigger.ANY_ROAD,
    ),
    TaskPlan(
        f"{RECONCILE}.pause_stream",
        TaskKind.PAUSE_STREAM,
        "Fences the tables that are to be copied again: they take no stream commits until they are resumed.",
        ("open_window", "find_holes"),
        trigger=Trigger.ANY_ROAD,
    ),
    _spark(
        StepKind.RESYNC, "Copies the tables again, from a new anchor.", f"{RECONCILE}.pause_stream", group=RECONCILE
    ),
    _spark(StepKind.REPLAY, "Applies the change log after the anchor.", f"{RECONCILE}.resync", group=RECONCILE),
    TaskPlan(
        f"{RECONCILE}.resume_stream",
        TaskKind.RESUME_STREAM,
        "Lets the tables take stream commits again.",
        (f"{RECONCILE}.replay",),
    ),
    _spark(
        StepKind.VERIFY, "Compares source and target at one position, row by row and column by column.", "open_window"
    ),
    TaskPlan(
        "close_window",
        TaskKind.CLOSE_WINDOW,
        "Proves that the cursors moved, lets the source forget what every table has, cleans up. Always runs; fails "
        "where a table is failing or blocked.",
        ("open_window", "snapshot", "find_holes", f"{RECONCILE}.resume_stream", "verify"),
        trigger=Trigger.ALWAYS,
    ),
)
