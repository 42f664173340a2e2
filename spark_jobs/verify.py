"""Compares the copies with the source, while the source is in use.

Per table: a snapshot of the source at position A, a window that ends at A, merged; then the target's version at A is
compared with the source in that snapshot. Each side counts its rows and sums up hashes of its values; where they
differ, the first differing keys are listed. Rows marked as deleted and rows outside ``where`` are left out. A table
without a key that ignores deletes must contain every row of the source at least as often: its surplus rows cannot be
identified. Columns that the stream does not carry are left out. Each table has its own snapshot: one for all tables
would keep the source from removing old row versions until all comparisons are done.

Without exact snapshots A is unknown: the window extends to the end of the stream, and the result is marked ``inexact``.

``step.tables`` has every captured table, because each window records all of them; those of ``step.compare`` are
compared, those of ``step.catch_up`` only apply the windows, so that the comparison of one table does not delay the
others. Writes what a stream run writes; after a crash the next run continues from the log and the cursors.

A table that is compared because its rows were rewritten continues if both sides are identical. Otherwise it is blocked
or, with ``reconcile: auto``, copied again by the next run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import CapturesLater, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Fenced, Problem, SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.definition import OnDelete, Reconcile
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.sparksql.compare import checksums_sql, live_rows, rows_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import literal
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.batch_plan import last_window_before_hole
from spark_jobs.copies.copying import open_copy
from spark_jobs.copies.source_checksums import SourceSide, open_source_side
from spark_jobs.extract import land_window
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.replay import replay_table
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_writable
from spark_jobs.windows.window_writer import WindowEnd
from spark_jobs.writers.writer import open_writer

DIFFERENCES_SHOWN = 20
TARGET_VIEW = "target_rows"


def run(job: Job) -> StepResult:
    """The tables one after the other: each comparison ends a window of its own."""
    results: list[TableResult] = []
    for task in (task for task in job.step.tables if task.table in job.step.compare):
        results += job.for_each_table([task], partial(verify_table, job))
        if job.log.sealed() >= job.step.window:
            manifest = job.log.manifest(job.step.window)
            job = replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi))
    catching_up = [task for task in job.step.tables if task.table in job.step.catch_up]
    job = replace(job, step=replace(job.step, window=job.log.sealed()))
    return job.result([*results, *job.for_each_table(catching_up, partial(replay_table, job))])


def verify_table(job: Job, work: TableWork) -> TableResult:
    """One table. The outcome is DONE also where the sides differ: ``detail`` has the result. Raises the errors of
    extracting, staging and merging, Fenced where the table does not accept changes."""
    task = work.task
    if isinstance(job.source, StreamHoldsSnapshots):
        raise Fenced(_source_without_rows(job, task))
    if task.rule.history is History.LOG:
        raise Fenced(_log_of_changes(task))
    if isinstance(job.source, CapturesLater):
        with work.phase("capture"):
            job.source.wait_for_capture()
    with open_copy(job, task, job.step.window - 1) as copy:
        with work.phase("catch up"):
            landed = _land(replace(job, step=replace(job.step, limit=dict(copy.position))))
            caught_up = replay_table(landed, work)
        if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
            return caught_up
        control, current = require_writable(job, task, frozenset())
        if last_window_before_hole(job.log, control, landed.step.window) < landed.step.window:
            raise Fenced(_has_hole(job, task))
        failpoint("verify.before_compare")
        with work.phase("compare"), open_source_side(job, work, copy) as source:
            detail = compare(job, work, copy, source, current.version)
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
    return _after_rewrite(job, task, current, replace(control.fenced(), attempt=job.step.attempt), copy, result)


def _after_rewrite(
    job: Job, task: TableTask, current: TargetState, record: ControlRecord, copy: Copy, result: TableResult
) -> TableResult:
    """The outcome of a comparison for a table whose rows were rewritten at the source. Raises Fenced where the table
    has changed since."""
    if result.detail["identical"]:
        committed = job.tables.fence(task.target, current, replace(record, identity=copy.identity))
        return replace(result, fence=committed.fence)
    problem = Problem(
        "SRC101",
        f"the rows of {task.table} were rewritten at the source, and its stream does not carry the new values",
        where=task.table,
        found=f"{result.detail['source_rows']:,} rows at the source, {result.detail['target_rows']:,} in the copy,"
        f" first differences: {', '.join(result.detail['differences'][:3]) or 'none shown'}",
        allowed="a rewrite that keeps every value, such as VACUUM FULL",
        do=f"airflow cdc resync {job.step.definition.name} --table {task.table}",
        data="the copy has the old values; later changes are kept in the change log",
    )
    if job.step.definition.source.reconcile is not Reconcile.AUTO:
        return replace(result, outcome=Outcome.BLOCKED, problem=problem)
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    state = State(TableState.RESYNCING, since, problem.what, problem.do, set_by=job.step.run_id)
    committed = job.tables.fence(task.target, current, replace(record, state=state))
    return replace(result, fence=committed.fence)


def _land(job: Job) -> Job:
    """Write windows up to ``step.limit``: a schema change or a hole of any table ends one early. Returns the job at the
    last window. If a window cannot be written, the error is one of the stream, and no table is blocked."""
    try:
        manifest, window = land_window(job)
    except CheckFailed as error:
        raise SourceUnavailable(*error.problems) from error
    if window.cut == WindowEnd.LIMIT:
        return job
    return _land(replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi)))


def _source_without_rows(job: Job, task: TableTask) -> Problem:
    return Problem(
        "VER002",
        f"{task.table} cannot be compared: its source delivers changes only, no rows",
        where=task.table,
        found=f"source type {job.step.definition.source.type}",
        do="compare the target with the database that the events come from",
    )


def _log_of_changes(task: TableTask) -> Problem:
    return Problem(
        "VER003",
        f"{task.table} cannot be compared: its copy is a log of changes, which may lack values of its rows",
        where=task.table,
        found="history: log",
        allowed="history: none, history: scd2",
        do="compare a copy of the table without `history: log`",
    )


def _has_hole(job: Job, task: TableTask) -> Problem:
    return Problem(
        "VER001",
        f"{task.table} cannot be compared: the change log has a hole for it",
        where=task.table,
        do=f"airflow cdc resync {job.step.definition.name} --table {task.table}",
    )


def compare(job: Job, work: TableWork, copy: Copy, source: SourceSide, version: int | None) -> dict[str, Any]:
    """The content of ``TableResult.detail``. ``inexact``: the source may have changed during the read, so a difference
    is significant only without concurrent writes."""
    task, schema = work.task, logged_columns(copy)
    expected = source.checksums(schema)
    rows = _target_rows(job, work, copy, source, version)
    _with_missing_columns(rows, schema).createOrReplaceTempView(TARGET_VIEW)
    actual = work.spark.sql(checksums_sql(TARGET_VIEW, schema, source.hash)).collect()[0]
    columns = {name: expected[f"c{index}"] == actual[f"c{index}"] for index, name in enumerate(schema.names)}
    identical = expected["n"] == actual["n"] and all(columns.values())
    surplus_allowed = _allows_surplus(task, schema)
    differences = [] if identical else _differences(work, source, schema, surplus_allowed)
    return {
        "source_rows": expected["n"],
        "target_rows": actual["n"],
        "identical": identical or (surplus_allowed and not differences),
        "columns": {} if surplus_allowed else columns,
        "differences": differences,
        "inexact": not job.source.exact_snapshot,
    }


def logged_columns(copy: Copy) -> TableSchema:
    """The columns that can be compared: columns that the stream does not carry have the values of the last copy."""
    return replace(
        copy.schema, columns=tuple(column for column in copy.schema.columns if column.name not in copy.unlogged)
    )


def _with_missing_columns(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Columns that the target lacks are NULL in all its rows: a stream may not announce a new column before the next
    change of its table."""
    present = {name.lower() for name in rows.columns}
    missing = [column for column in schema.columns if column.name.lower() not in present]
    return rows.select("*", *(F.expr(f"{literal(None, column.type)} AS {quoted(column.name)}") for column in missing))


def _allows_surplus(task: TableTask, schema: TableSchema) -> bool:
    return task.rule.keeps_rows and not schema.key


def _target_rows(job: Job, work: TableWork, copy: Copy, source: SourceSide, version: int | None) -> DataFrame:
    """The rows that must be in the source, too. Where deletes are ignored: only rows whose key is in the source, or all
    rows of a table without a key."""
    task = work.task
    rows = open_writer(job.step.definition.target.type, work.session, job.tables).read(task, version)
    rows = current_rows(task.rule.history, rows, copy.schema.key).where(live_rows(task.rule.on_delete is OnDelete.SOFT))
    if not task.rule.keeps_rows or _allows_surplus(task, copy.schema):
        return rows
    keys = source.keys().alias("source")
    same_key = [F.col(f"target.{quoted(name)}").eqNullSafe(F.col(f"source.{quoted(name)}")) for name in copy.schema.key]
    return rows.alias("target").join(keys, same_key, "left_semi")


def _differences(work: TableWork, source: SourceSide, schema: TableSchema, surplus_allowed: bool) -> list[str]:
    """Keys of the first rows that only one side has, or that differ. Equal rows are counted. ``surplus_allowed``: the
    target may have a row more often."""
    source_rows, target_rows = source.hashes(schema), work.spark.sql(rows_sql(TARGET_VIEW, schema))
    sides = source_rows.select("k", "h", F.lit(1).alias("n")).unionByName(
        target_rows.select("k", "h", F.lit(-1).alias("n"))
    )
    differing = sides.groupBy("k", "h").agg(F.sum("n").alias("n")).where("n > 0" if surplus_allowed else "n <> 0")
    rows = differing.select("k").distinct().orderBy("k").limit(DIFFERENCES_SHOWN).collect()
    return [row["k"].replace("\x01", ", ") for row in rows]


if __name__ == "__main__":
    harness.main(run)
