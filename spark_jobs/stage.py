"""From the change log to one merge-ready batch per table.

Only throw-away files are written. Dies at any point: the folder of the attempt is rubbish, for ``batch.json`` is
written last.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.core.changelog import batch_folder
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.errors import SchemaRefused
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.merge import KNOWN
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import STAGED, Batch, Outcome, StepResult, TableResult
from spark_jobs import harness
from spark_jobs.batch_plan import BatchPlan, catch_up, repair
from spark_jobs.bounds import bounds_of
from spark_jobs.broken_integrity import broken_integrity_told
from spark_jobs.carry_files import read_carry, write_carry
from spark_jobs.contents import look_into
from spark_jobs.fold import of_touched_keys, without_carried
from spark_jobs.folding import Folding
from spark_jobs.images import Images
from spark_jobs.job import Job, TableWork
from spark_jobs.log_slice import read_records, row_records, verify
from spark_jobs.parquet_files import row_count
from spark_jobs.sessions import FEW_ROWS, interpreted
from spark_jobs.standing import require_standing, require_told_fence
from spark_jobs.writers import open_writer

ROWS = "rows"
BATCH = "batch.json"


def run(job: Job) -> StepResult:
    return job.result(job.for_each_table(job.step.tables, partial(stage_table, job)))


def stage_table(job: Job, work: TableWork, also: frozenset[TableState] = frozenset()) -> TableResult:
    """Stage one table up to ``step.window``, or the slice ``step.repair`` again. ``also``: states beside replicating
    and failing in which the table may be staged.

    Raises Fenced where the target is not as it should be, StagingInvalid, SchemaRefused, IntegrityBroken.
    """
    step, log, task = job.step, job.log, work.task
    control, held = require_standing(job, task, also)
    require_told_fence(task, control)
    with work.phase("read"):
        if step.repair:
            plan = repair(log, control, step.repair[0], step.repair[-1])
        else:
            plan = catch_up(log, task, control, step.window)
        verify(log, plan.windows)
    if not plan.windows:
        if plan.problem:
            raise SchemaRefused(plan.problem)
        return work.result(Outcome.UNCHANGED, fence=control.fence, window=control.window)
    with work.phase("fold"):
        batch = _fold(job, work, control, plan, held.version)
    with work.phase("bounds"):
        batch = replace(batch, bounds=_bounds(job, batch))
    log.store.write(f"{batch.folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    failpoint("stage.after_batch")
    return work.result(
        Outcome.BLOCKED if plan.problem else Outcome.DONE,
        rows=plan.rows,
        counts=batch.counts,
        fence=batch.fence,
        window=batch.window,
        problem=plan.problem,
        detail={STAGED: batch.rows},
    )


def _fold(job: Job, work: TableWork, control: ControlRecord, plan: BatchPlan, version: int | None) -> Batch:
    """Fold the records of the plan and write the rows. Unchanged or not, a table that met records gets a batch: its
    commit moves the cursor past them."""
    log, task, spark = job.log, work.task, work.spark
    contents = look_into(log, plan.windows, control.floor)
    if plan.rows <= FEW_ROWS:
        interpreted(spark)
    records = read_records(spark, log, plan.windows)
    truncated_at = None if task.rule.on_delete is OnDelete.IGNORE else contents.truncated_at
    entries = row_records(records, truncated_at or control.floor)
    carried = partial(read_carry, spark, log, control.carry)
    if plan.touched:
        if control.carry.files:
            entries = without_carried(entries, carried())
        if truncated_at is None:
            slice_records = row_records(read_records(spark, log, plan.touched), control.floor)
            entries = of_touched_keys(entries, slice_records)
    writer = open_writer(job.step.definition.target.type, spark, job.tables)
    images = Images(plan.schema, {one: log.schema(one) for window in plan.windows for one in window.part.schema_ids})
    folding = Folding(
        task, entries, images, contents, truncated_at, plan, control, carried, lambda: writer.read(task, version)
    )
    folder = batch_folder(task.table, job.step.attempt)
    carry, retired_below = control.carry, max(control.retired_below, contents.barrier)
    with broken_integrity_told(job.step.definition.name, task.table, plan.window):
        staged = folding.staged()
        staged.rows.write.parquet(log.store.url(f"{folder}/{ROWS}"))
        if staged.carry is not None:
            carry = write_carry(log, task.table, job.step.attempt, staged.carry)
    return Batch(
        table=task.table,
        folder=folder,
        fence=control.fence,
        lo_window=control.window,
        window=plan.window,
        schema=plan.schema,
        rows=row_count(log.store, f"{folder}/{ROWS}"),
        counts=contents.counts,
        partial=KNOWN in staged.rows.columns,
        truncated=truncated_at is not None,
        repair=bool(plan.touched),
        added=plan.added,
        accounting={"read": plan.rows, "behind_floor": contents.records},
        carry=carry,
        retired_below=retired_below,
    )


def _bounds(job: Job, batch: Batch) -> tuple[tuple[str, str, str], ...]:
    if not batch.schema.key or not batch.rows:
        return ()
    return bounds_of(job.log.store, f"{batch.folder}/{ROWS}", batch.schema.column(batch.schema.key[0]))


if __name__ == "__main__":
    harness.main(run)
