"""The input of a step: from the run plan, from the results of earlier steps, and from the target tables, which take
precedence over both."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Outcome, Step, StepKind, TableResult, TableTask, has_batch
from airflow_cdc_provider.core.errors import UNREADABLE, CdcError
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.run_files import RunFiles
from airflow_cdc_provider.targets.registry import Targets
from airflow_cdc_provider.targets.target import TargetTables

COMMITS_ONCE = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC, StepKind.MERGE})


def planned_step(
    kind: StepKind, attempt: str, definition: Definition, plan: RunPlan, run: RunFiles, log: ChangeLog
) -> Step:
    """Without tables there is nothing to do."""
    step = Step(
        kind=kind,
        definition=definition,
        run_id=run.run_id,
        attempt=attempt,
        folder="",
        secrets_path="",
        owner=plan.owner,
        log_id=plan.log_id,
        epoch=plan.epoch,
        source_identity=plan.source_identity,
        tables=(),
        opening=plan.opening,
        hash_key_id=plan.hash_key_id,
    )
    match kind:
        case StepKind.SNAPSHOT:
            return replace(step, tables=plan.named(plan.copy), window=log.sealed())
        case StepKind.EXTRACT:
            return _extract(step, plan)
        case StepKind.STAGE:
            return replace(
                step, tables=plan.named(plan.stream), window=log.sealed(), repair=plan.repair, slices=plan.slices
            )
        case StepKind.MERGE:
            return _merge(step, plan, run)
        case StepKind.RESYNC:
            return replace(step, tables=plan.named((*plan.reconcile, *run.holes(plan.opening))), window=log.sealed())
        case StepKind.REPLAY:
            return _replay(step, plan, run, log)
        case StepKind.VERIFY:
            return _verify(step, plan, log)


def with_tables(step: Step, tables: Iterable[TableTask]) -> Step:
    return replace(step, tables=tuple(tables))


def with_target_state(step: Step, targets: Targets) -> tuple[Step, tuple[TableResult, ...]]:
    """With the current control records of the target tables. Every step but extract reads them before it starts. A copy
    that cannot be read is left out, with its result. Raises the first error if no copy can be read."""
    tasks, failed = list[TableTask](), list[TableResult]()
    error: CdcError | None = None
    for task in step.tables:
        try:
            tasks.append(_with_control(task, targets.of(task.table)))
        except UNREADABLE as caught:
            error = error or caught
            failed.append(TableResult(task.table, Outcome.FAILING, problem=caught.problems[0]))
    if error and not tasks:
        raise error
    return with_tables(step, tasks), tuple(failed)


def applicable(step: Step) -> Step:
    """Without the tables whose state does not allow the step: paused since the plan was made, or, for a resync, back in
    the stream."""
    match step.kind:
        case StepKind.STAGE | StepKind.MERGE:
            return with_tables(
                step, (task for task in step.tables if task.control is None or _state(task) in TAKES_CHANGES)
            )
        case StepKind.RESYNC:
            return with_tables(step, (task for task in step.tables if _state(task) is TableState.RESYNCING))
        case _:
            return step


def find_committed(step: Step, earlier: Collection[str]) -> tuple[TableResult, ...]:
    """Results for the tables that earlier attempts at a merge or copy have committed, but not reported."""
    if step.kind not in COMMITS_ONCE:
        return ()
    counts = {} if step.kind is StepKind.MERGE else {Operation.READ.value: 0}
    return tuple(
        TableResult(task.table, Outcome.DONE, counts=counts, fence=control.fence, window=control.window, found=True)
        for task in step.tables
        if (control := task.control) is not None and control.attempt in earlier
    )


def _extract(step: Step, plan: RunPlan) -> Step:
    """A window captures every table of the replicator, including those without a copy yet."""
    tables = plan.tables if plan.extract else ()
    return replace(step, tables=tables, window=plan.sealed + 1, lo=plan.lo, limit=plan.limit)


def _merge(step: Step, plan: RunPlan, run: RunFiles) -> Step:
    staged = run.latest("stage", plan.opening)
    if staged is None:
        return step
    stage, result = staged
    batches = tuple(table.table for table in result.tables if has_batch(table))
    tables, merge_of = plan.named(batches), stage.attempt if batches else ""
    return replace(step, tables=tables, window=stage.window, repair=stage.repair, merge_of=merge_of)


def _replay(step: Step, plan: RunPlan, run: RunFiles, log: ChangeLog) -> Step:
    """Only tables whose resync succeeded: the log after a copy's anchor continues that copy alone."""
    resynced = run.latest("reconcile.resync", plan.opening)
    copied = resynced[1].tables if resynced else ()
    names = tuple(table.table for table in copied if table.outcome is Outcome.DONE)
    tasks = (replace(task, identity=None) for task in plan.named(names))  # the new copy has a later identity
    return replace(step, tables=tuple(tasks), window=log.sealed())


def _verify(step: Step, plan: RunPlan, log: ChangeLog) -> Step:
    """A window of its own, from the end of the log to the position of the comparison. It captures every table."""
    sealed = log.sealed()
    return replace(
        step,
        tables=plan.tables if plan.compare else (),
        window=sealed + 1,
        lo=log.manifest(sealed).hi if sealed > plan.sealed else plan.lo,
        limit=plan.limit,
        compare=plan.compare,
        catch_up=tuple(table for table in plan.stream if table not in plan.compare),
        repair_tables=plan.repair_tables,
        sampled=plan.sampled,
    )


def _with_control(task: TableTask, target: TargetTables) -> TableTask:
    control = target.state(task.table, task.target).control
    if control is None:
        return replace(task, control=None)
    failing = task.state is TableState.FAILING and control.state.name is TableState.REPLICATING
    return replace(task, control=control, state=task.state if failing else control.state.name)


def _state(task: TableTask) -> TableState | None:
    return task.control.state.name if task.control else None
