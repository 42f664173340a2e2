"""Prove that the copies are the source, on a live system.

Per table: a snapshot of the source at A, a window that ends at A, merged; then the target's version at A against the
source under that snapshot. Both sides count and sum up hashes of their values by themselves; where they differ, the
first differing keys are named. Rows flagged deleted and rows outside ``where`` are left out. A table without key that
ignores deletes must hold every row of the source at least as often: which rows are left over nobody can tell. Columns
that the stream does not tell are left out. One snapshot per table: holding one for all would keep every table's old
rows from being cleaned up for as long as the whole proof takes.

Of a source without exact snapshots nobody knows A: the window goes as far as the stream does, and the result says
``inexact``.

``step.tables`` names every captured table, since each window says of all of them what it holds; those of
``step.compare`` are compared, those of ``step.catch_up`` only take what was landed: the comparison of one table does
not hold up the others. Writes what a run of the stream writes; dies at any point: the next run goes on from the log and
the cursors.

A table that was compared because its rows had been rewritten goes on where both sides are identical. Where they differ
it is blocked or, with ``reconcile: auto``, copied again by the next run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Fenced, Problem, SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete, Reconcile
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.sparksql.compare import checksums_sql, live_rows, rows_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import literal
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.batch_plan import before_hole
from spark_jobs.copies.copying import opened_copy
from spark_jobs.copies.source_checksums import SourceSide, source_side
from spark_jobs.extract import land_window
from spark_jobs.replay import replay_table
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_current
from spark_jobs.windows.window_writer import WindowEnd
from spark_jobs.writers.writer import open_writer

DIFFERENCES_SHOWN = 20
VIEW = "held_rows"


def run(job: Job) -> StepResult:
    """The tables one after the other: each proof ends a window of its own."""
    results: list[TableResult] = []
    for task in (task for task in job.step.tables if task.table in job.step.compare):
        results += job.for_each_table([task], partial(prove, job))
        if job.log.sealed() >= job.step.window:
            manifest = job.log.manifest(job.step.window)
            job = replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi))
    catching_up = [task for task in job.step.tables if task.table in job.step.catch_up]
    job = replace(job, step=replace(job.step, window=job.log.sealed()))
    return job.result([*results, *job.for_each_table(catching_up, partial(replay_table, job))])


def prove(job: Job, work: TableWork) -> TableResult:
    """One table. The outcome is DONE also where the sides differ: ``detail`` says so. Raises what landing, staging and
    merging raise, Fenced where the table takes no changes."""
    task = work.task
    if isinstance(job.source, StreamHoldsSnapshots):
        raise Fenced(_has_no_rows(job, task))
    with opened_copy(job, task, job.step.window - 1) as copy:
        with work.phase("catch up"):
            landed = _land(replace(job, step=replace(job.step, limit=dict(copy.position))))
            caught_up = replay_table(landed, work)
        if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
            return caught_up
        control, held = require_current(job, task, frozenset())
        if before_hole(job.log, control, landed.step.window) < landed.step.window:
            raise Fenced(_has_hole(job, task))
        failpoint("verify.before_compare")
        with work.phase("compare"), source_side(job, work, copy) as source:
            detail = compare(job, work, copy, source, held.version)
    result = work.result(
        Outcome.DONE,
        rows=detail["target_rows"],
        counts=caught_up.counts,
        fence=control.fence,
        window=landed.step.window,
        detail=detail,
    )
    if not task.rewritten:
        return result
    return _after_rewrite(job, task, held, replace(control.fenced(), attempt=job.step.attempt), copy, result)


def _after_rewrite(
    job: Job, task: TableTask, held: TargetState, record: ControlRecord, copy: Copy, result: TableResult
) -> TableResult:
    """What a comparison means for a table whose rows were rewritten at the source. Raises Fenced where it moved on."""
    if result.detail["identical"]:
        committed = job.tables.fence(task.target, held, replace(record, identity=copy.identity))
        return replace(result, fence=committed.fence)
    problem = Problem(
        "SRC101",
        f"the rows of {task.table} were rewritten at the source, and its stream does not carry the new values",
        where=task.table,
        found=f"{result.detail['source_rows']:,} rows at the source, {result.detail['target_rows']:,} in the copy,"
        f" first differences: {', '.join(result.detail['differences'][:3]) or 'none shown'}",
        allowed="a rewrite that keeps every value, such as VACUUM FULL",
        do=f"airflow cdc resync {job.step.definition.name} --table {task.table}",
        data="the copy holds the old values; later changes are kept in the change log",
    )
    if job.step.definition.source.reconcile is not Reconcile.AUTO:
        return replace(result, outcome=Outcome.BLOCKED, problem=problem)
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    state = State(TableState.RESYNCING, since, problem.what, problem.do, set_by=job.step.run_id)
    committed = job.tables.fence(task.target, held, replace(record, state=state))
    return replace(result, fence=committed.fence)


def _land(job: Job) -> Job:
    """Windows up to ``step.limit``, since a schema change or a hole of any table ends one early. Returns the job of the
    last. A window that cannot be landed is the trouble of the stream: no table is blocked for it."""
    try:
        manifest, window = land_window(job)
    except CheckFailed as error:
        raise SourceUnavailable(*error.problems) from error
    if window.cut == WindowEnd.LIMIT:
        return job
    return _land(replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi)))


def _has_no_rows(job: Job, task: TableTask) -> Problem:
    return Problem(
        "VER002",
        f"{task.table} cannot be compared: its source tells changes, and no rows",
        where=task.table,
        found=f"source type {job.step.definition.source.type}",
        do="compare the target with the database that the events come from",
    )


def _has_hole(job: Job, task: TableTask) -> Problem:
    return Problem(
        "VER001",
        f"{task.table} cannot be compared: the change log has a hole for it",
        where=task.table,
        do=f"airflow cdc resync {job.step.definition.name} --table {task.table}",
    )


def compare(job: Job, work: TableWork, copy: Copy, source: SourceSide, version: int | None) -> dict[str, Any]:
    """What stands in ``TableResult.detail``. ``inexact``: the source was read while it may have changed, so only with
    its writers at rest does a difference mean anything."""
    task, schema = work.task, logged_columns(copy)
    expected = source.checksums(schema)
    rows = _target_rows(job, work, copy, source, version)
    _with_untold(rows, schema).createOrReplaceTempView(VIEW)
    found = work.spark.sql(checksums_sql(VIEW, schema, source.hash)).collect()[0]
    columns = {name: expected[f"c{at}"] == found[f"c{at}"] for at, name in enumerate(schema.names)}
    identical = expected["n"] == found["n"] and all(columns.values())
    more = _may_hold_more(task, schema)
    differences = [] if identical else _differences(work, source, schema, more)
    return {
        "source_rows": expected["n"],
        "target_rows": found["n"],
        "identical": identical or (more and not differences),
        "columns": {} if more else columns,
        "differences": differences,
        "inexact": not job.source.exact_snapshot,
    }


def logged_columns(copy: Copy) -> TableSchema:
    """The columns that can be compared: others are as of the last copy."""
    return replace(copy.schema, columns=tuple(one for one in copy.schema.columns if one.name not in copy.unlogged))


def _with_untold(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Columns that the target lacks are NULL in all its rows: a stream need not tell of a new column before the next
    change of its table."""
    held = {name.lower() for name in rows.columns}
    untold = [column for column in schema.columns if column.name.lower() not in held]
    return rows.select("*", *(F.expr(f"{literal(None, column.type)} AS {quoted(column.name)}") for column in untold))


def _may_hold_more(task: TableTask, schema: TableSchema) -> bool:
    return task.rule.on_delete is OnDelete.IGNORE and not schema.key


def _target_rows(job: Job, work: TableWork, copy: Copy, source: SourceSide, version: int | None) -> DataFrame:
    """The rows that the source should hold too. Where deletes are ignored: only those whose key it still holds, or all
    where there is no key."""
    task = work.task
    rows = open_writer(job.step.definition.target.type, work.session, job.tables).read(task, version)
    rows = rows.where(live_rows(task.rule.on_delete is OnDelete.SOFT))
    if task.rule.on_delete is not OnDelete.IGNORE or _may_hold_more(task, copy.schema):
        return rows
    keys = source.keys().alias("source")
    same = [F.col(f"held.{quoted(name)}").eqNullSafe(F.col(f"source.{quoted(name)}")) for name in copy.schema.key]
    return rows.alias("held").join(keys, same, "left_semi")


def _differences(work: TableWork, source: SourceSide, schema: TableSchema, more: bool) -> list[str]:
    """Keys of the first rows that only one side holds, or that both hold differently. Equal rows are counted. ``more``:
    the target may hold a row more often."""
    ours, theirs = source.hashes(schema), work.spark.sql(rows_sql(VIEW, schema))
    sides = ours.select("k", "h", F.lit(1).alias("n")).unionByName(theirs.select("k", "h", F.lit(-1).alias("n")))
    differing = sides.groupBy("k", "h").agg(F.sum("n").alias("n")).where("n > 0" if more else "n <> 0")
    rows = differing.select("k").distinct().orderBy("k").limit(DIFFERENCES_SHOWN).collect()
    return [row["k"].replace("\x01", ", ") for row in rows]


if __name__ == "__main__":
    harness.main(run)
