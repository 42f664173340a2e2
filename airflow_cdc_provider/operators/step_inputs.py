"""The inputs of a step: from the run plan, from the results of earlier steps, and from the target tables, which take
precedence over both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult, TableTask, has_batch
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.run_files import RunFiles
from airflow_cdc_provider.targets.target import TargetTables

COMMITS_ONCE = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC, StepKind.MERGE})


@dataclass(frozen=True)
class Inputs:
    """The fields of Step that differ between kinds."""

    tables: tuple[TableTask, ...]
    window: int = 0
    lo: dict[str, str] = field(default_factory=dict)
    limit: dict[str, str] = field(default_factory=dict)
    compare: tuple[str, ...] = ()
    catch_up: tuple[str, ...] = ()
    repair: tuple[int, ...] = ()
    merge_of: str = ""

    def only(self, tables: Iterable[TableTask]) -> Inputs:
        return replace(self, tables=tuple(tables))


def inputs_of(kind: StepKind, plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    """Without tables there is nothing to do."""
    return _INPUTS[kind](plan, run, log)


def with_target_state(inputs: Inputs, target: TargetTables) -> Inputs:
    """With the current control records of the target tables. Every step but extract reads them before it starts."""
    return inputs.only(_with_control(task, target) for task in inputs.tables)


def applicable(kind: StepKind, inputs: Inputs) -> Inputs:
    """Without the tables whose state does not allow the step: paused since the plan was made, or, for a resync, back in
    the stream."""
    match kind:
        case StepKind.STAGE | StepKind.MERGE:
            return inputs.only(task for task in inputs.tables if task.control is None or _state(task) in TAKES_CHANGES)
        case StepKind.RESYNC:
            return inputs.only(task for task in inputs.tables if _state(task) is TableState.RESYNCING)
        case _:
            return inputs


def find_committed(kind: StepKind, inputs: Inputs, earlier: Collection[str]) -> tuple[TableResult, ...]:
    """Results for the tables that earlier attempts at a merge or copy have committed, but not reported."""
    if kind not in COMMITS_ONCE:
        return ()
    return tuple(
        TableResult(task.table, Outcome.DONE, counts=control.counts, fence=control.fence, window=control.window)
        for task in inputs.tables
        if (control := task.control) is not None and control.attempt in earlier
    )


def _snapshot(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    return Inputs(plan.named(plan.copy), window=log.sealed())


def _extract(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    """A window captures every table of the replicator, including those without a copy yet."""
    tables = plan.tables if plan.extract else ()
    return Inputs(tables, window=plan.sealed + 1, lo=plan.lo, limit=plan.limit)


def _stage(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    return Inputs(plan.named(plan.stream), window=log.sealed(), repair=plan.repair)


def _merge(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    staged = run.latest("stage")
    if staged is None:
        return Inputs(())
    step, result = staged
    batches = {table.table for table in result.tables if has_batch(table)}
    return Inputs(
        plan.named(tuple(batches)), window=step.window, repair=step.repair, merge_of=step.attempt if batches else ""
    )


def _resync(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    return Inputs(plan.named((*plan.reconcile, *run.holes())), window=log.sealed())


def _replay(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    """Only tables whose resync succeeded: the log after a copy's anchor continues that copy alone."""
    resynced = run.latest("reconcile.resync")
    copied = resynced[1].tables if resynced else ()
    names = tuple(table.table for table in copied if table.outcome is Outcome.DONE)
    tasks = (replace(task, identity=None) for task in plan.named(names))  # the new copy has a later identity
    return Inputs(tuple(tasks), window=log.sealed())


def _verify(plan: RunPlan, run: RunFiles, log: ChangeLog) -> Inputs:
    """A window of its own, from the end of the log to the position of the comparison. It captures every table."""
    sealed = log.sealed()
    return Inputs(
        plan.tables if plan.compare else (),
        window=sealed + 1,
        lo=log.manifest(sealed).hi if sealed > plan.sealed else plan.lo,
        limit=plan.limit,
        compare=plan.compare,
        catch_up=tuple(table for table in plan.stream if table not in plan.compare),
    )


_INPUTS: dict[StepKind, Callable[[RunPlan, RunFiles, ChangeLog], Inputs]] = {
    StepKind.SNAPSHOT: _snapshot,
    StepKind.EXTRACT: _extract,
    StepKind.STAGE: _stage,
    StepKind.MERGE: _merge,
    StepKind.RESYNC: _resync,
    StepKind.REPLAY: _replay,
    StepKind.VERIFY: _verify,
}


def _with_control(task: TableTask, target: TargetTables) -> TableTask:
    control = target.state(task.table, task.target).control
    if control is None:
        return replace(task, control=None)
    failing = task.state is TableState.FAILING and control.state.name is TableState.REPLICATING
    return replace(task, control=control, state=task.state if failing else control.state.name)


def _state(task: TableTask) -> TableState | None:
    return task.control.state.name if task.control else None
