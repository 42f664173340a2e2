"""Several attempts at one step may be alive at once: a killed task leaves its Spark driver running. What a new attempt
must know of an earlier one: whether its result still stands, and which tables both may write."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult, TableTask

WRITES = frozenset({StepKind.SNAPSHOT, StepKind.MERGE, StepKind.RESYNC, StepKind.REPLAY, StepKind.VERIFY})
"""Steps that commit to target tables. The others leave only files, which count only once they are sealed or named."""

COPIES = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC})
"""Steps of the copy lane that read a table whole."""

UNSETTLED = frozenset({Outcome.FAILING, Outcome.BLOCKED})


@dataclass(frozen=True)
class Submission:
    """Who submitted an attempt. ``place`` names the worker's process table: attempts of the same place can see and end
    each other's processes."""

    attempt: str
    place: str


def conflicting_tables(
    ours: StepKind, our_tables: frozenset[str], theirs: str, their_tables: frozenset[str]
) -> frozenset[str]:
    """The tables on which an earlier attempt and ours would get in each other's way. An attempt that cannot write to
    tables is a rival only of its own kind, and extract, which writes to none, only of other extracts."""
    if ours != theirs and (ours is StepKind.EXTRACT or theirs not in WRITES):
        return frozenset()
    return our_tables & their_tables


def result_is_current(before: Step, result: StepResult, now: Step) -> bool:
    """May the result of an earlier attempt be taken instead of running again?

    Yes where it ended well for every table, was told the same, and each table stands where that attempt found it, or
    where it left it. A copy may have been told of an earlier window: what counts is that its commit is the last one.
    """
    if result.problem is not None or any(table.outcome in UNSETTLED for table in result.tables):
        return False
    if _instructions(before) != _instructions(now):
        return False
    earlier = {task.table: task for task in before.tables}
    return all(_is_unchanged(earlier.get(task.table), task, before) for task in now.tables)


def _instructions(step: Step) -> tuple[object, ...]:
    return (
        step.kind,
        step.log_id,
        step.epoch,
        step.source_identity,
        0 if step.kind in COPIES else step.window,
        step.lo,
        step.limit,
        step.repair,
        step.merge_of,
        frozenset((task.table, task.target, task.definition_sha256, task.schema.schema_id) for task in step.tables),
    )


def _is_unchanged(earlier: TableTask | None, now: TableTask, before: Step) -> bool:
    if earlier is None:
        return False
    if now.control is None or earlier.control is None:
        stays = now.control is earlier.control and before.kind not in COPIES
    else:
        stays = now.control.nonce == earlier.control.nonce and now.control.token == earlier.control.token
    return stays or (now.control is not None and now.control.attempt == before.attempt)
