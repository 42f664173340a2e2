"""Rules for concurrent attempts of a step, since the Spark driver of a killed task may continue: whether the result of
an earlier attempt is still valid, and which tables two attempts may both write."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, StepResult, TableTask

WRITES = frozenset({StepKind.SNAPSHOT, StepKind.MERGE, StepKind.RESYNC, StepKind.REPLAY, StepKind.VERIFY})
"""Steps that commit to target tables. The others write only files, which have no effect until a manifest or control
record refers to them."""

SEALING = frozenset({StepKind.EXTRACT, StepKind.VERIFY})
"""Steps that seal a window of the source's stream."""

COPIES = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC})
"""Steps of the copy lane that read whole tables."""

UNSETTLED = frozenset({Outcome.FAILING, Outcome.BLOCKED})


@dataclass(frozen=True)
class Submission:
    """The origin of an attempt. ``place`` identifies the process table of the worker: attempts with the same place can
    see and terminate each other's processes."""

    attempt: str
    place: str


def conflicting_tables(
    kind: StepKind, tables: frozenset[str], earlier_kind: str, earlier_tables: frozenset[str]
) -> frozenset[str]:
    """The tables that an earlier attempt and this one would both change. An attempt that writes no tables conflicts
    only with attempts of the same step; so does extract, which writes no tables itself."""
    if kind != earlier_kind and (kind is StepKind.EXTRACT or earlier_kind not in WRITES):
        return frozenset()
    return tables & earlier_tables


def result_is_current(before: Step, result: StepResult, now: Step) -> bool:
    """Whether the result of an earlier attempt can be used instead of another run of the step.

    It can if every table succeeded, the steps are equal and of one opening of the run, and no other attempt has
    committed to the tables since. The window of a copy may differ: its commit must be the last one.
    """
    if result.problem is not None or any(table.outcome in UNSETTLED for table in result.tables):
        return False
    if _comparable(before) != _comparable(now):
        return False
    earlier = {task.table: task for task in before.tables}
    return all(_is_unchanged(earlier.get(task.table), task, before) for task in now.tables)


def _comparable(step: Step) -> tuple[object, ...]:
    return (
        step.kind,
        step.opening,
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
        unchanged = now.control is earlier.control and before.kind not in COPIES
    else:
        unchanged = now.control.nonce == earlier.control.nonce and now.control.token == earlier.control.token
    return unchanged or (now.control is not None and now.control.attempt == before.attempt)
