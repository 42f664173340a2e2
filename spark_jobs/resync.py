"""A new copy of tables whose stream cannot be trusted any more, over the old one, in one commit.

Readers see the old table or the new one. Dies before the commit: the old table stands and is still ``resyncing``; dies
after it: the next attempt copies once more, which is never wrong.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import StepResult, TableResult
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.copied_rows import CopiedRows, framed
from spark_jobs.copies.copying import (
    commit_copy,
    control_before,
    for_each_copy,
    is_new_table,
    opened_copy,
    prepare_copy,
    record_of,
    table_status,
)
from spark_jobs.copies.delete_guard import MissingRows, absent, live, require_yes
from spark_jobs.copies.key_audit import audit_keys, audit_window
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.spark_progress import watched
from spark_jobs.runtime.table_guard import require_expected_fence
from spark_jobs.writers.writer import open_writer


def run(job: Job) -> StepResult:
    return for_each_copy(job, partial(copy_again, job))


def copy_again(job: Job, work: TableWork) -> TableResult:
    """Copy one resyncing table over what it holds; where only its keys are to be compared, do that. Raises Fenced where
    the table is not resyncing (any more), Blocked where more would be deleted than allowed and nobody has said yes;
    then nothing is written.

    Of a table without key nobody can tell which rows were deleted and which were changed: where it ignores deletes, the
    rows it has kept are counted as going, too."""
    task = work.task
    named, held = table_status(job, task)
    if held.control is None or held.control.state.name is not TableState.RESYNCING:
        raise Fenced(
            Problem(
                "CPY003",
                f"{task.table} is not waiting for a resync",
                where=job.tables.locate(task.target),
                found=held.control.state.name if held.control else "no control record",
                allowed=TableState.RESYNCING,
            )
        )
    require_expected_fence(task, held.control)
    if (window := audit_window(job.log, held.control)) is not None:
        return audit_keys(job, work, window)
    job = control_before(job, task)
    with opened_copy(job, task, job.step.window) as copy, copy_rows(job, work, copy) as new:
        failpoint("copy.anchored")
        old = open_writer(job.step.definition.target.type, work.session, job.tables).read(task, held.version)
        record = record_of(job, task, named, held, copy, held.control.state)
        rows = framed(work, copy, new)
        missing = MissingRows(0, 0)
        if task.rule.on_delete is not OnDelete.IGNORE or not copy.schema.key:
            with work.phase("compare"):
                missing = _missing(copy, old, new)
            if not (
                isinstance(job.source, StreamHoldsSnapshots)
                and is_new_table(job.log.manifest(job.step.window), task.table)
            ):
                require_yes(job, work, held.control, missing, "resync")
        if task.rule.on_delete is not OnDelete.HARD and copy.schema.key:
            rows = rows.unionByName(_kept(copy, old, new, rows), allowMissingColumns=True)
        copied = CopiedRows(lambda: rows, progress=watched(work.spark, copy))
        commit = prepare_copy(job, work, copy, copied)
        return commit_copy(job, work, copied, commit, record, missing=missing.rows, of=missing.of)


def _missing(copy: Copy, old: DataFrame, new: DataFrame) -> MissingRows:
    """How many live rows of the target are gone from the source. Without a key in common only their number tells."""
    rows = live(old)
    of = rows.count()
    if copy.schema.key and set(copy.schema.key) <= set(old.columns):
        return MissingRows(absent(copy.schema.key, rows, new).count(), of)
    return MissingRows(max(0, of - new.count()), of)


def _kept(copy: Copy, old: DataFrame, new: DataFrame, rows: DataFrame) -> DataFrame:
    """What ``on_delete`` keeps of the rows that the copy does not hold: flagged where it is ``soft``, else as they
    were. They stand at the floor of the copy like all others."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    gone = absent(copy.schema.key, old, new).withColumn("_cdc_order", F.lit(copy.floor))
    if "_cdc_deleted" in types:
        gone = gone.withColumn("_cdc_deleted", F.lit(True))
    return gone.select(*(F.col(quoted(name)).cast(types[name]) for name in gone.columns if name in types))


if __name__ == "__main__":
    harness.main(run)
