"""A new copy of tables whose stream cannot be trusted any more, over the old one, in one commit.

Readers see the old table or the new one. Dies before the commit: the old table stands and is still ``resyncing``; dies
after it: the next attempt copies once more, which is never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.decisions import approves_deletes
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.errors import Blocked, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import StepResult, TableResult
from spark_jobs import harness
from spark_jobs.copying import commit_copy, copied_rows, look, opened_copy, record_of, standing_before
from spark_jobs.job import Job, TableWork
from spark_jobs.readers.copies import copy_rows
from spark_jobs.readers.jdbc import quoted
from spark_jobs.standing import require_told_fence
from spark_jobs.writers import open_writer


@dataclass(frozen=True)
class Missing:
    """``rows`` of ``of`` live rows of the target that the copy does not hold."""

    rows: int
    of: int

    @property
    def share(self) -> float:
        return self.rows / self.of if self.of else 0.0


def run(job: Job) -> StepResult:
    return job.result(job.for_each_table(job.step.tables, partial(copy_again, job)))


def copy_again(job: Job, work: TableWork) -> TableResult:
    """Copy one resyncing table over what it holds. Raises Fenced where the table is not resyncing (any more), Blocked
    where the copy would delete more than allowed and nobody has said yes; then nothing is written.

    Of a table without key nobody can tell which rows were deleted and which were changed: where it ignores deletes, the
    rows it has kept are counted as going, too."""
    task = work.task
    named, held = look(job, task)
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
    require_told_fence(task, held.control)
    job = standing_before(job, task)
    with opened_copy(job, task, job.step.window) as copy, copy_rows(job, work, copy) as new:
        failpoint("copy.anchored")
        old = open_writer(job.step.definition.target.type, work.spark, job.tables).read(task, held.version)
        record = record_of(job, task, named, held, copy, held.control.state)
        rows = copied_rows(work, copy, new)
        missing = Missing(0, 0)
        if task.rule.on_delete is not OnDelete.IGNORE or not copy.schema.key:
            with work.phase("compare"):
                missing = _missing(copy, old, new)
            _require_yes(job, work, held.control, missing)
        if task.rule.on_delete is not OnDelete.HARD and copy.schema.key:
            rows = rows.unionByName(_kept(copy, old, new, rows), allowMissingColumns=True)
        return commit_copy(job, work, copy, rows, record, missing=missing.rows, of=missing.of)


def _missing(copy: Copy, old: DataFrame, new: DataFrame) -> Missing:
    """How many live rows of the target are gone from the source. Without a key in common only their number tells."""
    live = old.where(~F.col("_cdc_deleted")) if "_cdc_deleted" in old.columns else old
    of = live.count()
    if copy.schema.key and set(copy.schema.key) <= set(old.columns):
        return Missing(_absent(copy, live, new).count(), of)
    return Missing(max(0, of - new.count()), of)


def _absent(copy: Copy, old: DataFrame, new: DataFrame) -> DataFrame:
    """Rows of the target whose key the copy does not hold. Only the key columns are read from the source."""
    key = copy.schema.key
    keys = new.select(*(F.col(quoted(name)) for name in key)).alias("new")
    same = [F.col(f"old.{quoted(name)}").eqNullSafe(F.col(f"new.{quoted(name)}")) for name in key]
    return old.alias("old").join(keys, same, "left_anti")


def _kept(copy: Copy, old: DataFrame, new: DataFrame, rows: DataFrame) -> DataFrame:
    """What ``on_delete`` keeps of the rows that the copy does not hold: flagged where it is ``soft``, else as they
    were. They stand at the floor of the copy like all others."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    absent = _absent(copy, old, new).withColumn("_cdc_order", F.lit(copy.floor))
    if "_cdc_deleted" in types:
        absent = absent.withColumn("_cdc_deleted", F.lit(True))
    return absent.select(*(F.col(quoted(name)).cast(types[name]) for name in absent.columns if name in types))


def _require_yes(job: Job, work: TableWork, control: ControlRecord, missing: Missing) -> None:
    allowed = job.step.definition.resync.max_delete
    if missing.share <= allowed or approves_deletes(job.log.decisions(), work.task.table, control.state):
        return
    name, table = job.step.definition.name, work.task.table
    raise Blocked(
        Problem(
            "CPY004",
            f"the resync of {table} would delete {missing.rows:,} of {missing.of:,} rows",
            where=job.tables.locate(work.task.target),
            found=f"{missing.share:.0%} of the rows are not in the source: a lost permission looks like that, too",
            allowed=f"resync.max_delete: {allowed:.0%}",
            do=f"look at the source; if the rows are meant to go: airflow cdc resync {name} --table {table} --yes",
            data="the target is as it was; the change log goes on",
        )
    )


if __name__ == "__main__":
    harness.main(run)
