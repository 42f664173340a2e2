"""First copies that go on where an earlier attempt ended.

A copy is committed under the anchor with which it was begun, so all windows after that are applied on top of it,
whenever its splits were read. If they were read in several views of the table, it is consistent with the window that
contains the last of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, basis_of, kept_copy_path
from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import ReadsUnderViews
from airflow_cdc_provider.core.decisions.holes import hole_of
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import AUDIT
from airflow_cdc_provider.core.log.copy_progress import copy_folder
from airflow_cdc_provider.core.spec.history import History
from spark_jobs.copies.copying import open_copy
from spark_jobs.copies.kept_splits import has_splits, read_kept
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.job import Job


@dataclass(frozen=True)
class OpenedCopy:
    """``job``: at the last window before the anchor of the copy. ``began``: before the anchor. ``kept``: the id under
    which its splits are kept, empty if they are not."""

    job: Job
    copy: Copy
    began: datetime
    kept: str = ""


@contextmanager
def open_first_copy(job: Job, task: TableTask) -> Iterator[OpenedCopy]:
    """The copy that an earlier attempt has begun, if it can be continued, else a new one. That of a history is not
    continued: its rows have the time of their attempt."""
    began = datetime.now(UTC)
    with open_copy(job, task, job.step.window, task.rule.snapshot.extent) as copy:
        if not copy.read.lasting or task.rule.history is not History.NONE:
            yield OpenedCopy(job, copy, began)
            return
        kept = continued_copy(job, task, copy) or _begun(job, task, copy)
        yield OpenedCopy(replace(job, step=replace(job.step, window=kept.window)), kept.copy, began, kept.id)


def must_catch_up(opened: OpenedCopy, task: TableTask) -> bool:
    """Whether the copy is not exact, because of its source, or because another attempt may have read some of its
    splits. Call it after the rows have been read."""
    if not opened.job.source.exact_snapshot:
        return True
    if not opened.kept:
        return False
    kept: KeptCopy | None = read_kept(opened.job.log.store, kept_copy_path(task.table), KeptCopy)
    return kept is None or kept.id != opened.kept or kept.continued


def continued_copy(job: Job, task: TableTask, now: Copy) -> KeptCopy | None:
    """The copy that an earlier attempt has begun; None if there is none that can be continued. ``now``: a view of the
    table that was opened now."""
    kept: KeptCopy | None = read_kept(job.log.store, kept_copy_path(task.table), KeptCopy)
    if kept is None or not has_splits(job.log.store, task.table, kept.id):
        return None
    why = kept.why_not_continued(basis_of(job.step, task), now, job.log.oldest())
    if why := why or _lost_since(job, task, kept):
        log_line(f"{task.table}: the copy of {kept.began_at} is not continued: {why}")
        job.log.store.delete(f"{copy_folder(task.table)}/{kept.id}")
        return None
    log_line(f"{task.table}: continues the copy of {kept.began_at}, anchored after window {kept.window}")
    kept = replace(kept, continued=True)
    job.log.store.write(kept_copy_path(task.table), kept.encode())
    read = kept.copy.read
    if isinstance(job.source, ReadsUnderViews):
        read = job.source.under_view(read, now.read)
    return replace(kept, copy=replace(kept.copy, rows=now.rows, read=read))


def _lost_since(job: Job, task: TableTask, kept: KeptCopy) -> str:
    """What the log lacks after the anchor, which only another copy has. A comparison of the keys repairs an audit."""
    for number in range(kept.window + 1, job.log.sealed() + 1):
        hole = hole_of(job.log.manifest(number), task.table, kept.copy.floor, task.log_sha256)
        if hole and hole.kind != AUDIT:
            return f"window {number} of the change log lacks changes: {hole.detail or hole.cause}"
    return ""


def _begun(job: Job, task: TableTask, copy: Copy) -> KeptCopy:
    began_at = datetime.now(UTC).isoformat(timespec="seconds")
    kept = KeptCopy(uuid.uuid4().hex, began_at, job.step.window, basis_of(job.step, task), copy)
    job.log.store.write(kept_copy_path(task.table), kept.encode())
    return kept
