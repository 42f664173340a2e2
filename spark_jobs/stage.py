"""From the change log to one merge-ready batch per table.

Only throw-away files are written, and what came of bad records, which stays. Dies at any point: the folder of the
attempt is rubbish, for ``batch.json`` is written last.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.core.decisions.steps import STAGED, Batch, Outcome, StepResult, TableResult
from airflow_cdc_provider.core.errors import Problem, SchemaRefused
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.batches.batch_plan import BatchPlan, catch_up, repair
from spark_jobs.batches.builder import BATCH, BatchBuilder, BuiltBatch, worth_trying
from spark_jobs.batches.key_bounds import bounds_of
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.quarantine.partitioning import Stopped
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_current, require_expected_fence
from spark_jobs.windows.log_reader import verify


def run(job: Job) -> StepResult:
    return job.result(job.for_each_table(job.step.tables, partial(stage_table, job)))


def stage_table(job: Job, work: TableWork, also: frozenset[TableState] = frozenset()) -> TableResult:
    """Stage one table up to ``step.window``, or the slice ``step.repair`` again. ``also``: states beside replicating
    and failing in which the table may be staged.

    Raises Fenced where the target is not as it should be, StagingInvalid, SchemaRefused, IntegrityBroken,
    BadRecordFound, SourceUnavailable.
    """
    step, log, task = job.step, job.log, work.task
    control, held = require_current(job, task, also)
    require_expected_fence(task, control)
    upto, stop = step.window, None
    while True:
        with work.phase("read"):
            plan = _plan(job, work, control, upto)
            verify(log, plan.windows)
        problem = stop or plan.problem
        if not plan.windows and problem:
            raise SchemaRefused(problem) if stop is None else Stopped(upto + 1, problem)
        if not plan.windows and not worth_trying(log, task.table, control, step.repair):
            return work.result(Outcome.UNCHANGED, fence=control.fence, window=control.window)
        try:
            with work.phase("fold"):
                batched = BatchBuilder(job, work, control, plan, held.version).batch()
        except Stopped as stopped:
            upto, stop = stopped.window - 1, stopped.problems[0]
            continue
        return _staged(job, work, plan, batched, problem)


def _plan(job: Job, work: TableWork, control: ControlRecord, upto: int) -> BatchPlan:
    step = job.step
    if step.repair:
        return repair(job.log, control, step.repair[0], step.repair[-1])
    return catch_up(job.log, work.task, control, upto)


def _staged(
    job: Job, work: TableWork, plan: BatchPlan, batched: BuiltBatch | None, problem: Problem | None
) -> TableResult:
    if batched is None:
        return work.result(Outcome.UNCHANGED)
    with work.phase("bounds"):
        batch = replace(batched.batch, bounds=_bounds(job, batched.batch))
    job.log.store.write(f"{batch.folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    failpoint("stage.after_batch")
    return work.result(
        Outcome.BLOCKED if problem else Outcome.FAILING if batched.problem else Outcome.DONE,
        rows=plan.rows,
        counts=batch.counts,
        fence=batch.fence,
        window=batch.window,
        problem=problem or batched.problem,
        detail={STAGED: batch.rows},
    )


def _bounds(job: Job, batch: Batch) -> tuple[tuple[str, str, str], ...]:
    if not batch.schema.key or not batch.rows:
        return ()
    return bounds_of(job.log.store, f"{batch.folder}/{ROWS}", batch.schema.column(batch.schema.key[0]))


if __name__ == "__main__":
    harness.main(run)
