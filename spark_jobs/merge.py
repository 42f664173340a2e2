"""Applies staged batches, each in one commit with its cursor.

A crash before a commit leaves the table unchanged. After a commit the cursor is past the batch, so it cannot be applied
twice.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.core.decisions.steps import Batch, Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Problem, RowMissing, SourceUnavailable
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.quarantine import DISCARDED
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.column_comments import comments_after
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copy_extent import extent_after
from airflow_cdc_provider.core.table.former_columns import former_after
from airflow_cdc_provider.core.table.states import TableState, replicating_again
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.fencing import superseded
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.staged_rows import BATCH, StagedRows
from spark_jobs.engines.choice import local_limit, on_engine
from spark_jobs.runtime import harness
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_current_batch, require_writable
from spark_jobs.writers.lost_rows import count_lost_rows
from spark_jobs.writers.maintenance import maintain_table
from spark_jobs.writers.writer import open_writer


def run(job: Job) -> StepResult:
    return job.result(job.for_each_table(job.step.tables, partial(merge_table, attempt=job.step.merge_of)))


def merge_table(
    job: Job, work: TableWork, attempt: str, more_states: frozenset[TableState] = frozenset(), *, resumes: bool = False
) -> TableResult:
    """Apply the batch that ``attempt`` staged for the table, if there is one. ``resumes``: the commit puts the table
    back into the stream. Raises Fenced where the table has changed since, RowMissing where a change finds no row,
    SourceUnavailable where the next stage will fetch that row, or may have its delete."""
    task = work.task
    path = f"{batch_folder(task.table, attempt)}/{BATCH}"
    if not job.log.store.exists(path):
        return work.result(Outcome.UNCHANGED)
    batch = from_plain(Batch, json.loads(job.log.store.read(path)))
    control, current = require_writable(job, task, more_states)
    require_current_batch(batch.fence, batch.lo_window, control, current)
    record = _control_record(job, task, control, batch)
    record = replace(record, state=replicating_again(record.state, record.committed_at)) if resumes else record
    record = _name_commit(job, task, current, record)
    rows = StagedRows(work.session, job.log.store, batch)
    try:
        with work.phase("merge"):
            limit = local_limit(job.tables)
            counts = on_engine(job, work, batch.rows, lambda engine: engine.merge(task, rows, record), limit)
    except RowMissing as error:
        if batch.repair:
            raise
        if job.fetches_rows:
            raise SourceUnavailable(_will_be_fetched(task, error)) from error
        if control.high is not None and record.window < control.high:
            raise SourceUnavailable(_is_catching_up(task, error, control.high)) from error
        raise
    lost = 0
    if batch.repair and batch.partial and task.rule.on_delete is OnDelete.SOFT:
        writer = open_writer(job, work)
        lost = count_lost_rows(rows.frame, writer.read(task, None), batch.schema.key)
        _log_lost_rows(task, lost)
    changed = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
    if discarded := batch.accounting.get(DISCARDED):
        changed[DISCARDED] = discarded
    return work.result(
        Outcome.DONE,
        rows=batch.rows,
        counts=changed,
        fence=record.fence,
        window=record.window,
        detail=batch.counts | ({"lost": lost} if lost else {}) | maintain_table(job, work, control.window, record),
    )


def _will_be_fetched(task: TableTask, error: RowMissing) -> Problem:
    return Problem(
        "TGT032",
        f"a change of {task.table} found no row in the target",
        where=error.problems[0].where,
        do="nothing: the next run searches for such changes and fetches their rows from the source",
        data="nothing of the batch was applied; the change log keeps it",
    )


def _is_catching_up(task: TableTask, error: RowMissing, high: int) -> Problem:
    """The copy may have been read after the row was deleted."""
    return Problem(
        "TGT042",
        f"a change of {task.table} found no row in the target, whose copy is not consistent yet",
        where=error.problems[0].where,
        allowed=f"a missing row whose delete follows up to window {high}",
        do="nothing: the next run applies the change together with later ones",
        data="nothing of the batch was applied; the change log keeps it",
    )


def _log_lost_rows(task: TableTask, lost: int) -> None:
    if lost:
        log_line(
            f"{task.table}: {lost:,} rows deleted in this interval are not in the target, and the change log does not"
            " have all their columns; they are not restored"
        )


def _control_record(job: Job, task: TableTask, control: ControlRecord, batch: Batch) -> ControlRecord:
    """The control record of the commit: the batch's window is applied. A commit that does not move the cursor raises
    the fence: a repair, or one that releases waiting records."""
    now = utc_now()
    record = replace(
        control,
        owner=job.step.owner,
        attempt=job.step.attempt,
        accounting=batch.accounting,
        nonce=uuid.uuid4().hex,
        committed_at=now,
    )
    if batch.high is not None:
        record = replace(record, high=max(control.high or 0, batch.high))
    if batch.repair:
        return replace(record, fence=control.fence + 1)
    record = replace(
        record,
        carry=batch.carry,
        retired_below=batch.retired_below,
        applied=control.applied.after(control.window, batch.newest, job.log.oldest()),
        versions_until=batch.versions_until,
        ignored=control.ignored if batch.ignored is None else batch.ignored,
        schema=batch.schema,
        extent=extent_after(control.extent, control.schema, batch.schema) if control.schema else control.extent,
        identity=task.identity or control.identity,
        comments=comments_after(control, batch.schema),
        former=former_after(control.former, control.schema or batch.schema, batch.schema),
    )
    if batch.window == control.window:
        return replace(record, fence=control.fence + 1)
    manifest = job.log.manifest(batch.window)
    return replace(
        record,
        window=batch.window,
        epoch=manifest.epoch,
        hi=manifest.hi,
        manifest_sha256=job.log.manifest_sha256(batch.window),
    )


def _name_commit(job: Job, task: TableTask, current: TargetState, record: ControlRecord) -> ControlRecord:
    """Name the commit in the change log. If an attempt that died, or is still alive, has taken the name, the fence is
    raised in the target: that shuts out the other attempt and changes no row, so the batch is still valid."""
    assert current.control is not None
    if record.fence == current.control.fence and job.log.write_control(record):
        return record
    claimed = job.tables.fence(task.target, current, current.control.fenced())
    record = replace(record, fence=claimed.fence + (1 if record.window == claimed.window else 0))
    named = job.log.claim_fence(record) if record.fence > claimed.fence else job.log.write_control(record)
    if not named:
        raise superseded(record, "another attempt has named this commit")
    return record


if __name__ == "__main__":
    harness.main(run)
