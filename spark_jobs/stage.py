"""From the change log to one merge-ready batch per table.

Only throw-away files are written. Dies at any point: the folder of the attempt is rubbish, for ``batch.json`` is
written last.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.changelog import batch_folder
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.errors import SchemaRefused
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.merge import KNOWN
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import STAGED, Batch, Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.tables import Regime
from spark_jobs import harness
from spark_jobs.batch_plan import BatchPlan, catch_up, repair
from spark_jobs.bounds import bounds_of
from spark_jobs.broken_integrity import broken_integrity_told
from spark_jobs.contents import Contents, look_into
from spark_jobs.fold import KeyedFold, fold_keyed, of_touched_keys
from spark_jobs.images import Images
from spark_jobs.job import Job, TableWork
from spark_jobs.log_slice import read_records, row_records, verify
from spark_jobs.multiset import KeylessFold, fold_keyless
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
    if plan.touched and truncated_at is None:
        slice_records = row_records(read_records(spark, log, plan.touched), control.floor)
        entries = of_touched_keys(entries, slice_records)
    writer = open_writer(job.step.definition.target.type, spark, job.tables)
    images = Images(plan.schema, {one: log.schema(one) for window in plan.windows for one in window.part.schema_ids})
    folder = batch_folder(task.table, job.step.attempt)
    with broken_integrity_told(job.step.definition.name, task.table, plan.window):
        staged = _staged(task, entries, images, contents, truncated_at, plan, lambda: writer.read(task, version))
        staged.write.parquet(log.store.url(f"{folder}/{ROWS}"))
    return Batch(
        table=task.table,
        folder=folder,
        fence=control.fence,
        lo_window=control.window,
        window=plan.window,
        schema=plan.schema,
        rows=row_count(log.store, f"{folder}/{ROWS}"),
        counts=contents.counts,
        partial=KNOWN in staged.columns,
        truncated=truncated_at is not None,
        repair=bool(plan.touched),
        added=plan.added,
        accounting={"read": plan.rows, "behind_floor": contents.records},
    )


def _staged(
    task: TableTask,
    entries: DataFrame,
    images: Images,
    contents: Contents,
    truncated_at: str | None,
    plan: BatchPlan,
    target: Callable[[], DataFrame],
) -> DataFrame:
    if not images.schema.key:
        ignore = task.rule.on_delete is OnDelete.IGNORE
        return fold_keyless(entries, KeylessFold(images, ignore, truncated_at is not None, target))
    return fold_keyed(
        entries,
        KeyedFold(
            images,
            doubly_held=images.schema.regime is Regime.DOUBLE and "delete" in contents.counts,
            partial=contents.incomplete > 0,
            moved=contents.moved > 0,
            keep_deleted=task.rule.on_delete is OnDelete.SOFT and "delete" in contents.counts,
            truncated=truncated_at is not None,
            own_row=bool(plan.touched),
            target=target,
        ),
    )


def _bounds(job: Job, batch: Batch) -> tuple[tuple[str, str, str], ...]:
    if not batch.schema.key or not batch.rows:
        return ()
    return bounds_of(job.log.store, f"{batch.folder}/{ROWS}", batch.schema.column(batch.schema.key[0]))


if __name__ == "__main__":
    harness.main(run)
