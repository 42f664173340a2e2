"""A split of a window, read and written by one Spark task, or by this process where there is only one."""

from __future__ import annotations

import gc
import resource
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark import TaskContext

from airflow_cdc_provider.connectors.copied.reading import read_stream
from airflow_cdc_provider.connectors.duplicates import drop_duplicates, without_unrecognised
from airflow_cdc_provider.connectors.source import StreamSplit
from airflow_cdc_provider.connectors.source_features import RegistryAccess, RepeatsChanges
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step, TableTask
from airflow_cdc_provider.core.errors import CdcError, SourceUnavailable
from airflow_cdc_provider.core.log.change_log import attempt_folder, table_folder
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.open_store import open_log
from spark_jobs.runtime.console import log_trace
from spark_jobs.runtime.failures import problem_of, scrub
from spark_jobs.runtime.planned_source import open_planned_source, planned_hash_key
from spark_jobs.runtime.row_progress import progress_reporter
from spark_jobs.windows.followed_since import followed_since
from spark_jobs.windows.recent_event_ids import recent_event_ids
from spark_jobs.windows.recent_windows import recent_windows
from spark_jobs.windows.record_files import RecordFile
from spark_jobs.windows.window_writer import LandedSplit, Limits, land_changes


@dataclass(frozen=True)
class WindowSplit:
    """What one task reads: split number ``number`` of the window. Contains secrets: it travels only inside the
    serialised task."""

    step: Step
    secrets: Secrets
    known: Mapping[str, TableSchema]
    stream: StreamSplit
    number: int
    limits: Limits


@dataclass(frozen=True)
class SplitResult:
    """The result of a task. A ``CdcError`` travels as a value: Spark would turn an exception into text. ``peak_bytes``
    is the memory of the task's Python process, ``duration_s`` its time after the start of that process."""

    landed: LandedSplit | None
    error: CdcError | None
    peak_bytes: int
    duration_s: float


def land_split(split: WindowSplit) -> SplitResult:
    """Every try of the task writes its own files; only the returned ones are ever named in a manifest. An unexpected
    error of a split that belongs to one table is one of this table."""
    started = time.monotonic()
    try:
        with gc_disabled():
            landed: LandedSplit | None = _land(split)
            error: CdcError | None = None
    except CdcError as failure:
        landed, error = None, failure
    except Exception as failure:
        if not split.stream.table:
            raise
        log_trace(scrub(traceback.format_exc(), split.secrets))
        landed, error = None, SourceUnavailable(problem_of(failure, split.secrets))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return SplitResult(landed, error, peak_bytes, time.monotonic() - started)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Records contain no reference cycles; searching the buffered ones for cycles costs a sixth of the time. The
    collector belongs to the process: it stays enabled where other threads run."""
    alone = threading.current_thread() is threading.main_thread() and gc.isenabled()
    if alone:
        gc.disable()
    try:
        yield
    finally:
        if alone:
            gc.enable()


def _land(split: WindowSplit) -> LandedSplit:
    step = split.step
    log = open_log(step.definition, split.secrets.staging)
    context = TaskContext.get()
    serial = f"{split.number:04d}-{context.taskAttemptId() if context else 0}"
    folder = attempt_folder(step.window, step.attempt)
    files = 0

    def new_file(table: str) -> RecordFile:
        nonlocal files
        files += 1
        return RecordFile(log.store, f"{folder}/{table_folder(table)}/{serial}-{files:05d}.parquet")

    source = open_planned_source(step, split.secrets, RegistryAccess(split.secrets.registry, log))
    known = split.known if source.has_transactions else None
    tasks = _with_known_schemas(step.tables, known or {})
    key = planned_hash_key(step, split.secrets)
    items = read_stream(source, split.stream, tasks, step.epoch, key)
    if source.duplicates_within:
        windows = recent_windows(log, step.window, datetime.now(UTC) - source.duplicates_within)
        items = drop_duplicates(items, recent_event_ids(log, windows))
        if isinstance(source, RepeatsChanges):
            items = without_unrecognised(items, followed_since(windows, step, source))
    report = progress_reporter(log.store, step, f"{split.number:04d}")
    policies = {task.table: task.rule.schema_changes.over(step.definition.schema_changes) for task in step.tables}
    return land_changes(items, list(policies), known, new_file, report, split.limits, policies)


def _with_known_schemas(tasks: Sequence[TableTask], known: Mapping[str, TableSchema]) -> list[TableTask]:
    """Each task with the schema that its table has in the log. A paused table may be many windows behind."""
    return [
        replace(task, control=replace(task.control, schema=known.get(task.table, task.control.schema)))
        if task.control
        else task
        for task in tasks
    ]
