"""From the change log to one merge-ready batch per table.

Writes only temporary files, except the records of the quarantine, which stay, and the commits that alter a table at a
schema change. After a crash at any point the folder of the attempt is garbage: ``batch.json`` is written last.
"""

from __future__ import annotations

import json
from dataclasses import replace
from operator import methodcaller

from airflow_cdc_provider.connectors.registry import delivers_late
from airflow_cdc_provider.core.decisions.schema_decisions import SchemaAction, SchemaDecision
from airflow_cdc_provider.core.decisions.steps import STAGED, Batch, Outcome, StepResult, TableResult
from airflow_cdc_provider.core.decisions.truncates import decide_truncate
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.batch_input import BatchInput, has_waiting_work
from spark_jobs.batches.batch_plan import BatchPlan, plan_catch_up, plan_repair
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.late_changes import LateChanges
from spark_jobs.batches.schema_change import alter_table, copy_again, schema_decision, schema_policy
from spark_jobs.batches.staged_rows import BATCH, ROWS
from spark_jobs.copies.slices import stage_slice
from spark_jobs.engines.choice import local_limit, on_engine
from spark_jobs.quarantine.partitioning import Stopped
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_expected_fence, require_writable
from spark_jobs.windows.log_reader import verify_files
from spark_jobs.writers.former_columns import require_free_names


def run(job: Job) -> StepResult:
    slices = {one.table: one for one in job.step.slices}

    def stage(job: Job, work: TableWork) -> TableResult:
        one = slices.get(work.task.table)
        return stage_slice(job, work, one) if one else stage_table(job, work)

    return job.result(job.for_each_table(job.step.tables, stage))


def stage_table(job: Job, work: TableWork, more_states: frozenset[TableState] = frozenset()) -> TableResult:
    """Stage one table up to ``step.window``, or the windows of ``step.repair`` again. ``more_states``: states besides
    replicating and failing in which the table may be staged.

    A schema change that the target applies in place is committed before the batch after it. Raises Fenced where the
    target is not in the expected state, StagingInvalid, IntegrityBroken, BadRecordFound, SourceUnavailable."""
    step, log, task = job.step, job.log, work.task
    control, current = require_writable(job, task, more_states)
    require_expected_fence(task, control)
    upto, stopped = step.window, None
    while True:
        with work.phase("read"):
            plan = _plan(job, work, control, upto)
            verify_files(log, plan.windows)
        if stopped and not plan.windows:
            raise Stopped(upto + 1, stopped)
        schema = None if stopped else _decision(job, work, control, plan)
        if schema and not plan.windows:
            if schema.action is SchemaAction.ALTER and plan.stop:
                with work.phase("alter"):
                    alter_table(job, task, current, plan.stop.before, schema.alterations, schema.reason)
                control, current = require_writable(job, task, more_states)
                continue
            return _schema_stopped(job, work, current, schema)
        if not plan.windows and not has_waiting_work(log, task.table, control, step.repair):
            return work.result(Outcome.UNCHANGED, fence=control.fence, window=control.window)
        require_free_names(job, work, plan.added)
        try:
            with work.phase("fold"):
                batch = BatchInput(job, work, control, plan, current.version)
                built = on_engine(job, work, batch.rows, methodcaller("fold", batch), local_limit(job.tables))
        except Stopped as error:
            upto, stopped = error.window - 1, error.problems[0]
            continue
        return _staged(job, work, plan, built, stopped, schema)


def _plan(job: Job, work: TableWork, control: ControlRecord, upto: int) -> BatchPlan:
    step, task = job.step, work.task
    late = None
    if delivers_late(step.definition):
        late = LateChanges(job.log, task, control, batch_folder(task.table, step.attempt))
    if step.repair:
        return plan_repair(job.log, control, step.repair[0], step.repair[-1], late)
    return plan_catch_up(job.log, task, control, upto, schema_policy(job, task), late)


def _decision(job: Job, work: TableWork, control: ControlRecord, plan: BatchPlan) -> SchemaDecision | None:
    """About the change before which the batch ends."""
    if plan.stop:
        return schema_decision(job, work.task, control, plan.stop)
    if plan.truncate:
        return decide_truncate(control, plan.truncate, schema_policy(job, work.task))
    return None


def _schema_stopped(job: Job, work: TableWork, current: TargetState, schema: SchemaDecision) -> TableResult:
    """There is nothing to apply before the change."""
    assert current.control is not None
    if schema.action is SchemaAction.COPY:
        record = copy_again(job, work.task, current, schema)
        return work.result(Outcome.UNCHANGED, fence=record.fence, window=record.window)
    return work.result(
        Outcome.BLOCKED,
        fence=current.control.fence,
        window=current.control.window,
        problem=schema.problem,
        question=schema.question,
    )


def _staged(
    job: Job,
    work: TableWork,
    plan: BatchPlan,
    built: BuiltBatch | None,
    stopped: Problem | None,
    schema: SchemaDecision | None,
) -> TableResult:
    if built is None:
        return work.result(Outcome.UNCHANGED)
    with work.phase("bounds"):
        batch = replace(built.batch, bounds=_leading_key_bounds(job, built.batch))
    job.log.store.write(f"{batch.folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    failpoint("stage.after_batch")
    problem = stopped or (schema.problem if schema else None)
    return work.result(
        Outcome.BLOCKED if problem else Outcome.FAILING if built.problem else Outcome.DONE,
        rows=plan.rows,
        counts=batch.counts,
        fence=batch.fence,
        window=batch.window,
        problem=problem or built.problem,
        question=schema.question if schema else None,
        detail={STAGED: batch.rows},
    )


def _leading_key_bounds(job: Job, batch: Batch) -> tuple[tuple[str, str, str], ...]:
    if not batch.schema.key or not batch.rows:
        return ()
    return key_bounds(job.log.store, f"{batch.folder}/{ROWS}", bounded_column(batch.schema))


if __name__ == "__main__":
    harness.main(run)
