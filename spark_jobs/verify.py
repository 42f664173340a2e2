"""Compares the copies with the source, while the source is in use.

Per table: a snapshot of the source at position A, a window that ends at A, merged; then the target's version at A is
compared with the source in that snapshot (``proofs``); what differs is reported, and repaired in the tables of
``step.repair_tables``. Rows marked as deleted and rows outside ``where`` and ``snapshot.where`` are left out. A table
that started without rows has rows that are equal in the source, not all of them. A table without a key that
ignores deletes must contain every row of the source at least as often: its surplus rows cannot be identified. Columns
that the stream does not carry are left out. Each table has its own snapshot: one for all tables would keep the source
from removing old row versions until all comparisons are done.

Without exact snapshots A is unknown: the window extends to the end of the stream, and the result is marked ``inexact``.

``step.tables`` has every captured table, because each window records all of them; those of ``step.compare`` are
compared, those of ``step.catch_up`` only apply the windows, so that the comparison of one table does not delay the
others. Writes what a stream run writes; after a crash the next run continues from the log and the cursors.

A table that is compared because its rows were rewritten continues if both sides are identical. Otherwise it is blocked
or, with ``reconcile: auto``, copied again by the next run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import CapturesLater, ReadsTablesApart, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.holes import hole_for
from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.decisions.table_checks import repair_line
from airflow_cdc_provider.core.errors import CheckFailed, Fenced, Problem, SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import repairs_itself
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.batch_plan import last_window_before_hole
from spark_jobs.copies.copying import open_snapshot
from spark_jobs.extract import land_window
from spark_jobs.proofs.proof import prove, rewritten_documents
from spark_jobs.replay import replay_table
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_writable
from spark_jobs.windows.log_reader import windows_between
from spark_jobs.windows.window_writer import WindowEnd


def run(job: Job) -> StepResult:
    """The tables one after the other: each comparison ends a window of its own."""
    results: list[TableResult] = []
    for task in (task for task in job.step.tables if task.table in job.step.compare):
        results += job.for_each_table([task], verify_table)
        if job.log.sealed() >= job.step.window:
            manifest = job.log.manifest(job.step.window)
            job = replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi))
    catching_up = [task for task in job.step.tables if task.table in job.step.catch_up]
    job = replace(job, step=replace(job.step, window=job.log.sealed()))
    return job.result([*results, *job.for_each_table(catching_up, replay_table)])


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
    with open_snapshot(job, task, job.step.window - 1) as snapshot:
        copy = snapshot.copy
        with work.phase("catch up"):
            landed = _land(replace(job, step=replace(job.step, limit=dict(copy.position))), task)
            caught_up = replay_table(landed, work)
        if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
            return caught_up
        control, current = require_writable(job, task, frozenset())
        if last_window_before_hole(job.log, control, landed.step.window) < landed.step.window:
            raise Fenced(_has_hole(job, task))
        if any(
            one.part.rows for one in windows_between(job.log, task.source_table, control.window, landed.step.window)
        ):
            raise Fenced(_not_caught_up(job, task))
        failpoint("verify.before_compare")
        proof = prove(job, work, snapshot, current, landed.step.window)
    result = work.result(
        Outcome.DONE,
        rows=proof.detail["target_rows"],
        counts=dict(Counter(caught_up.counts) + Counter(proof.counts)),
        fence=proof.fence,
        window=landed.step.window,
        detail=proof.detail,
    )
    if not task.rewritten:
        return result
    return _after_rewrite(job, task, current, replace(control.fenced(), attempt=job.step.attempt), copy, result)


def _after_rewrite(
    job: Job, task: TableTask, current: TargetState, record: ControlRecord, copy: Copy, result: TableResult
) -> TableResult:
    """The outcome of a comparison for a table whose rows were rewritten at the source. Raises Fenced where the table
    has changed since."""
    documents = rewritten_documents(job.tables, copy)
    if result.detail["identical"] and not documents:
        committed = job.tables.fence(task.target, current, replace(record, identity=copy.identity))
        return replace(result, fence=committed.fence)
    apart = f", not compared: {', '.join(documents)}" if documents else ""
    problem = Problem(
        "SRC101",
        f"the rows of {task.table} were rewritten at the source, and its stream does not carry the new values",
        where=task.table,
        found=f"{result.detail['source_rows']:,} rows at the source, {result.detail['target_rows']:,} in the copy,"
        f" first differences: {', '.join(result.detail['differences'][:3]) or 'none shown'}{apart}",
        allowed="a rewrite that keeps every value, such as VACUUM FULL",
        do=repair_line(job.step.definition.name, task.table, task.rule),
        data="the copy has the old values; later changes are kept in the change log",
    )
    if not repairs_itself(job.step.definition, task.rule):
        return replace(result, outcome=Outcome.BLOCKED, problem=problem)
    since = utc_now()
    state = State(TableState.RESYNCING, since, problem.what, problem.do, set_by=job.step.run_id)
    committed = job.tables.fence(task.target, current, replace(record, state=state))
    return replace(result, fence=committed.fence)


def _land(job: Job, task: TableTask) -> Job:
    """Write windows up to ``step.limit``: a schema change or a hole of any table ends one early. A hole of the table
    that is compared ends them all: its changes after that are left to the stream. Returns the job at the last window.
    If a window cannot be written, the error is one of the stream, and no table is blocked."""
    try:
        manifest, window = land_window(job)
    except CheckFailed as error:
        raise SourceUnavailable(*error.problems) from error
    if window.cut == WindowEnd.LIMIT or (task.control and hole_for(manifest, task.control)):
        return job
    limit = _limit_after(job, task, manifest.hi)
    return _land(replace(job, step=replace(job.step, window=manifest.window + 1, lo=manifest.hi, limit=limit)), task)


def _limit_after(job: Job, task: TableTask, position: Position) -> dict[str, str]:
    """Of the next window. The limit of a source with a position for each table serves one window: it has the number of
    that reading."""
    if not isinstance(job.source, ReadsTablesApart):
        return job.step.limit
    return dict(job.source.status(position, [task.source_table]).limit)


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
        do=repair_line(job.step.definition.name, task.table, task.rule),
    )


def _not_caught_up(job: Job, task: TableTask) -> Problem:
    return Problem(
        "VER010",
        f"{task.table} was altered, and cannot be compared before it has applied the changes after that",
        where=task.table,
        do="nothing: the next run applies them and compares again; repeat the comparison if a command requested it",
    )


if __name__ == "__main__":
    harness.main(run)
