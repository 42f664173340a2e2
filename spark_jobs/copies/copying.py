"""The parts of a full copy: where it stands, the record of its commit, the commit itself."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.source import Copy, LimitsCopies, StreamHoldsSnapshots
from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.decisions.table_decisions import hole_of
from airflow_cdc_provider.core.errors import Fenced, PositionLost, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import RELOAD, RESTART, Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.core.table.states import State
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.progress import reported
from spark_jobs.writers.writer import CopyCommit, open_writer


def control_before(job: Job, task: TableTask) -> Job:
    """Where the stream tells its tables from their beginning, the job with the last window before which it told nothing
    of this table, or behind which it tells the whole table once more; any other job as it is. Raises PositionLost
    (CPY006) where the log does not reach back to there."""
    if not isinstance(job.source, StreamHoldsSnapshots):
        return job
    log, sealed = job.log, job.step.window
    end = log.manifest(sealed).hi if sealed else {}
    for number in range(sealed, max(log.oldest(), 1) - 1, -1):
        manifest = log.manifest(number)
        if is_new_table(manifest, task.table) or job.source.contains_all_after(manifest.hi, end, task.table):
            return replace(job, step=replace(job.step, window=number))
        if hole_of(manifest, task.table, ""):
            break
    raise PositionLost(
        Problem(
            "CPY006",
            f"neither source nor change log still tell {task.table} from its beginning",
            where=task.table,
            found=f"windows {log.oldest()} to {sealed} of the log",
            do="if topic or folder still hold all of it, give it a replicator of its own, which reads them from their "
            "beginning; else let the source tell all its rows anew, into a topic or folder of its own, and name that "
            "in the YAML; see docs/guides/event-feeds.md",
            data="the target is as it was",
        )
    )


def is_new_table(manifest: Manifest, table: str) -> bool:
    """The feed tells the whole table behind this window."""
    return any(hole.table == table and hole.kind in (RESTART, RELOAD) for hole in manifest.holes)


def for_each_copy(job: Job, function: Callable[[TableWork], TableResult]) -> StepResult:
    """The step's tables side by side, as many as the source has room for. Raises what the source raises when it is
    asked for that."""
    limit = job.source.copies_at_once() if isinstance(job.source, LimitsCopies) else None
    return job.result(job.for_each_table(job.step.tables, function, limit))


@contextmanager
def opened_copy(job: Job, task: TableTask, window: int) -> Iterator[Copy]:
    """A copy that stands at the end of a sealed window, or later."""
    sealed = job.log.manifest(window).hi if window else {}
    with job.source.copy(task, job.step.epoch, sealed, job.cores) as copy:
        yield copy


def table_status(job: Job, task: TableTask) -> tuple[int, TargetState]:
    """The highest fence ever named for the table, and what stands in the target. In this order: whoever commits a fence
    after the look, a pause for instance, has named it above that number, and the copy's claim fails."""
    named = job.log.highest_fence(task.table)
    return named, job.tables.state(task.table, task.target)


def record_of(job: Job, task: TableTask, named: int, held: TargetState, copy: Copy, state: State) -> ControlRecord:
    """The control record of the copy, one fence above whatever was named for the table before ``table_status``. Its
    cursor is the window sealed before the anchor: everything after it in the log is applied on top, down to the floor.

    Called when the rows have been read: only a window that begins after that brings a copy that is not exact up to what
    it holds already, and the first that has not begun yet is the one after the next."""
    step = job.step
    known = [named]
    known += [split_token(held.token)[0]] if held.token is not None else []
    known += [held.control.fence] if held.control else []
    before = job.log.manifest(step.window) if step.window else None
    return ControlRecord(
        replicator=step.definition.name,
        table=task.table,
        log_id=step.log_id,
        owner=step.owner,
        attempt=step.attempt,
        fence=max(known) + 1,
        window=step.window,
        floor=copy.floor,
        state=state,
        epoch=step.epoch,
        high=None if job.source.exact_snapshot else job.log.sealed() + 2,
        hi=before.hi if before else {},
        manifest_sha256=job.log.manifest_sha256(step.window),
        definition_sha256=task.definition_sha256,
        schema=copy.schema,
        identity=copy.identity,
        source_identity=step.source_identity,
        committed_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        nonce=uuid.uuid4().hex,
    )


def prepare_copy(job: Job, work: TableWork, copy: Copy, rows: CopiedRows) -> CopyCommit:
    """Bring the rows, as far as they do not wait for their commit."""
    writer = open_writer(job.step.definition.target.type, work.session, job.tables)
    with work.phase("copy"), reported(work.task.table, rows.progress):
        return writer.copy(replace(work.task, schema=copy.schema), rows)


def commit_copy(
    job: Job, work: TableWork, rows: CopiedRows, commit: CopyCommit, record: ControlRecord, **detail: object
) -> TableResult:
    """Rows and record in one commit. Raises Fenced where somebody else has taken the table over."""
    if not job.log.claim_fence(record):
        raise Fenced(
            Problem(
                "CPY001",
                "another attempt is at work on this table",
                where=work.task.table,
                found=f"fence {record.fence} or a higher one is named already",
                do="nothing: it goes on with the copy, or the next run does",
                data="this attempt wrote nothing",
            )
        )
    failpoint("copy.before_commit")
    with work.phase("copy"), reported(work.task.table, rows.progress):
        number = commit(record)
    failpoint("copy.after_commit")
    return work.result(
        Outcome.DONE, rows=number, counts={"read": number}, fence=record.fence, window=record.window, detail=detail
    )
