"""A share of a window, landed by one Spark task wherever that task runs; by the driver, where there is no other."""

from __future__ import annotations

import gc
import resource
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark import TaskContext

from airflow_cdc_provider.connectors.duplicates import drop_duplicates
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import StreamSplit
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step, TableTask
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.log.change_log import attempt_folder, table_folder
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.open_store import open_log
from spark_jobs.runtime.row_progress import record_progress
from spark_jobs.windows.recent_event_ids import event_ids
from spark_jobs.windows.record_files import RecordFile
from spark_jobs.windows.window_writer import Landed, Limits, land


@dataclass(frozen=True)
class WindowSplit:
    """What one task lands: ``partition`` number ``number`` of the window. Holds secrets: it travels inside the
    serialised task only."""

    step: Step
    secrets: Secrets
    known: Mapping[str, TableSchema]
    partition: StreamSplit
    number: int
    limits: Limits


@dataclass(frozen=True)
class SplitResult:
    """What a task says at its end. A failure with words travels as a value: as an exception Spark would turn it into
    text. ``peak_bytes`` is the memory of the task's Python process, ``took_s`` its time behind the start of that."""

    landed: Landed | None
    error: CdcError | None
    peak_bytes: int
    took_s: float


def land_split(share: WindowSplit) -> SplitResult:
    """Every try of the task writes files of its own; only what it returns is ever named."""
    began = time.monotonic()
    try:
        with uncollected():
            landed, error = _land(share), None
    except CdcError as failure:
        landed, error = None, failure
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return SplitResult(landed, error, peak_bytes, time.monotonic() - began)


@contextmanager
def uncollected() -> Iterator[None]:
    """Records hold no cycles. Looking for some among all that wait to be written costs a sixth of the time. The
    collector is the process's: it stays on where other threads work beside this one."""
    alone = threading.current_thread() is threading.main_thread() and gc.isenabled()
    if alone:
        gc.disable()
    try:
        yield
    finally:
        if alone:
            gc.enable()


def _land(share: WindowSplit) -> Landed:
    step = share.step
    log = open_log(step.definition, share.secrets.staging)
    context = TaskContext.get()
    serial = f"{share.number:04d}-{context.taskAttemptId() if context else 0}"
    folder = attempt_folder(step.window, step.attempt)
    made = 0

    def new_file(table: str) -> RecordFile:
        nonlocal made
        made += 1
        return RecordFile(log.store, f"{folder}/{table_folder(table)}/{serial}-{made:05d}.parquet")

    source = open_source(step.definition, share.secrets.source)
    known = share.known if source.has_transactions else None
    items = source.read(share.partition, _led_to(step.tables, known or {}), step.epoch)
    if source.duplicates_within:
        seen = event_ids(log, step.window, source.duplicates_within, datetime.now(UTC))
        items = drop_duplicates(items, seen)
    note = record_progress(log.store, step, f"{share.number:04d}")
    return land(items, [task.table for task in step.tables], known, new_file, note, share.limits)


def _led_to(tasks: Sequence[TableTask], known: Mapping[str, TableSchema]) -> list[TableTask]:
    """Each with the schema that the log has led its copy to. A paused table is windows behind."""
    return [
        replace(task, control=replace(task.control, schema=known.get(task.table, task.control.schema)))
        if task.control
        else task
        for task in tasks
    ]
