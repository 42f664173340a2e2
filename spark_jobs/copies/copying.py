"""The parts of a full copy: its position, its control record, its commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

from airflow_cdc_provider.connectors.copied.reading import open_source_copy, open_source_snapshot
from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import (
    LimitsCopies,
    StreamHoldsSnapshots,
    TableSnapshot,
)
from airflow_cdc_provider.core.columns.functions import hash_key_id
from airflow_cdc_provider.core.decisions.holes import hole_of
from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Fenced, PositionLost
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import RELOAD, RESTART, Manifest
from airflow_cdc_provider.core.log.copy_progress import copy_folder, paused_path
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import hidden_fingerprint
from airflow_cdc_provider.core.table.applied_order import AppliedOrder
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.core.table.copy_extent import WHOLE, CopyExtent
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.ignored_columns import ids_of
from airflow_cdc_provider.core.table.states import State
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.copies.copied_rows import CopiedRows, ReadProgress
from spark_jobs.copies.extents import filtered, limited
from spark_jobs.copies.read_end import ReadEnd, end_of_read
from spark_jobs.engines.choice import on_engine
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.progress import report_progress
from spark_jobs.runtime.row_progress import save_progress
from spark_jobs.writers.writer import CopyCommit


def with_copy_window(job: Job, task: TableTask) -> Job:
    """If the source is a feed that contains a snapshot of its tables: the job at the last window before the feed has
    content of this table, or after which it contains the whole table again; any other job unchanged. Raises
    PositionLost (CPY006) where the log does not reach back to that window, or was read by other settings since."""
    if not isinstance(job.source, StreamHoldsSnapshots):
        return job
    log, sealed = job.log, job.step.window
    end, found = _end_of(job, sealed), f"windows {log.oldest()} to {sealed} of the log"
    for number in range(sealed, max(log.oldest(), 1) - 1, -1):
        manifest = log.manifest(number)
        name = task.source_table
        if has_reload(manifest, name) or job.source.contains_all_after(manifest.hi, end, name):
            return replace(job, step=replace(job.step, window=number))
        if hole := hole_of(manifest, task.table, "", task.log_sha256):
            found += f"; {hole.detail or hole.cause}"
            break
    raise PositionLost.of(
        "CPY006",
        f"neither the source nor the change log contains {task.table} from its beginning",
        where=task.table,
        found=found,
        do="if the topic or folder still contains the whole table, move the table to a replicator of its own, "
        "which reads from the beginning; otherwise snapshot the table again into a new topic or folder and "
        "name that in the YAML; see docs/guides/event-feeds.md",
        data="the target is unchanged",
    )


def has_reload(manifest: Manifest, table: str, kinds: Collection[str] = (RESTART, RELOAD)) -> bool:
    """The feed contains the whole table again after this window."""
    return any(hole.table == table and hole.kind in kinds for hole in manifest.holes)


def for_each_copy(job: Job, function: Callable[[Job, TableWork], TableResult]) -> StepResult:
    """Copy the step's tables in parallel, as many as the source has capacity for, in the order of their priority.
    Raises the source's error when it reads that capacity."""
    limit = job.source.copies_at_once() if isinstance(job.source, LimitsCopies) else None
    tables = sorted(job.step.tables, key=lambda task: -task.rule.snapshot.priority)
    return job.result(job.for_each_table(tables, function, limit))


@contextmanager
def open_copy(job: Job, task: TableTask, window: int, extent: CopyExtent = WHOLE) -> Iterator[Copy]:
    """A copy at the end of a sealed window, or later."""
    task, sealed = filtered(task, extent), _end_of(job, window)
    with open_source_copy(job.source, task, job.step.epoch, sealed, job.cores, job.hash_key) as copy:
        yield limited(copy, extent)


def open_snapshot(job: Job, task: TableTask, window: int) -> AbstractContextManager[TableSnapshot]:
    """Of the rows that the copy of the table has, at the end of a sealed window, or later: for a comparison."""
    task = filtered(task, task.control.extent) if task.control else task
    return open_source_snapshot(job.source, task, job.step.epoch, _end_of(job, window), job.cores, job.hash_key)


def _end_of(job: Job, window: int) -> Position:
    """Empty before the first window."""
    return job.log.manifest(window).hi if window else {}


def table_status(job: Job, task: TableTask) -> tuple[int, TargetState]:
    """The highest fence ever named for the table, and the state of the target. Read in this order: a fence committed
    after the state was read, for instance by a pause, has been named above that number, and the copy's claim fails."""
    named = job.log.highest_fence(task.table)
    return named, job.tables.state(task.table, task.target)


def build_control_record(
    job: Job,
    task: TableTask,
    named_fence: int,
    current: TargetState,
    copy: Copy,
    state: State,
    catches_up: ReadEnd | None,
) -> ControlRecord:
    """The control record of the copy, one fence above all fences named for the table before ``table_status``. Its
    cursor is the window sealed before the anchor: all later windows are applied on top, down to the floor.

    ``catches_up``: of a copy that is not exact, which becomes consistent only with a window that begins after its rows
    have been read."""
    step = job.step
    fences = [named_fence]
    fences += [split_token(current.token)[0]] if current.token is not None else []
    fences += [current.control.fence] if current.control else []
    previous = job.log.manifest(step.window) if step.window else None
    return ControlRecord(
        replicator=step.definition.name,
        table=task.table,
        log_id=step.log_id,
        owner=step.owner,
        attempt=step.attempt,
        fence=max(fences) + 1,
        window=step.window,
        floor=copy.floor,
        state=state,
        epoch=step.epoch,
        high=catches_up.high if catches_up else None,
        hi=previous.hi if previous else {},
        manifest_sha256=job.log.manifest_sha256(step.window),
        definition_sha256=task.definition_sha256,
        log_sha256=task.log_sha256,
        hidden_sha256=hidden_fingerprint(task.rule, hash_key_id(job.hash_key)),
        schema=stored_schema(task.rule.history, copy.schema),
        identity=copy.identity,
        source_identity=step.source_identity,
        ignored=ids_of(task.ignored, task.logged.schema) if task.logged else {},
        extent=task.rule.snapshot.extent,
        name_in_source=task.renamed_to,
        applied=AppliedOrder(step.window),
        shard_value=task.rule.shard_value,
        resyncs=task.resyncs,
        comments=dict.fromkeys(current.control.comments) if current.control else {},
        committed_at=utc_now(),
        nonce=uuid.uuid4().hex,
    )


def prepare_copy(job: Job, work: TableWork, copy: Copy, rows: CopiedRows) -> tuple[CopyCommit, ReadEnd]:
    """Read the rows; those of one view at any time until the commit."""
    return prepare_commit(job, work, copy, rows), end_of_read(job, work)


def prepare_commit(job: Job, work: TableWork, copy: Copy, rows: CopiedRows) -> CopyCommit:
    task = replace(work.task, schema=stored_schema(work.task.rule.history, copy.schema))
    with work.phase("copy"), report_progress(work.task.table, rows.progress, partial(save_progress, job, work.task)):
        return on_engine(job, work, copy.rows, lambda engine: engine.copy(task, rows))


def commit_copy(
    job: Job, work: TableWork, progress: ReadProgress, commit: CopyCommit, record: ControlRecord, **detail: object
) -> TableResult:
    """Write rows and control record in one commit. Raises Fenced where another attempt has taken over the table,
    SourceUnreachable (SRC010) where the rows may be those of another source."""
    job.require_planned_source()
    if not job.log.claim_fence(record):
        raise Fenced.of(
            "CPY001",
            "another attempt is copying this table",
            where=work.task.table,
            found=f"fence {record.fence} or a higher one is named already",
            do="nothing: that attempt continues the copy, or the next run does",
            data="this attempt wrote nothing",
        )
    failpoint("copy.before_commit")
    with work.phase("copy"), report_progress(work.task.table, progress, partial(save_progress, job, work.task)):
        number = commit(record)
    failpoint("copy.after_commit")
    _forget_kept(job, work.task.table)
    return work.result(
        Outcome.DONE, rows=number, counts={"read": number}, fence=record.fence, window=record.window, detail=detail
    )


def _forget_kept(job: Job, table: str) -> None:
    """A pause that came with the commit stays: the next run pauses the table."""
    store, folder, pause = job.log.store, copy_folder(table), paused_path(table)
    for name in store.names(folder):
        if f"{folder}/{name}" != pause:
            store.delete(f"{folder}/{name}")
