"""The rows of a copy as they are written to a target: with the technical columns, in the target's sort order."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.copied.kept_copies import kept_splits_folder
from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.copy_progress import Progress
from airflow_cdc_provider.core.spec.definition import Definition, OnDelete, TableRule
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.batches.row_files import as_in_file, read_frame
from spark_jobs.batches.staged_columns import column_list
from spark_jobs.copies.kept_splits import ROWS, KeepResults, kept_rows, write_rows
from spark_jobs.copies.read_end import ReadEnd, end_of_read
from spark_jobs.copies.split_copy import Rows, WrittenSplits, write_splits
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.histories.copied_versions import copied_columns
from spark_jobs.runtime.job import DRIVER_SPLITS, Job, TableWork
from spark_jobs.runtime.parallel import RunSplits, run_in_driver, run_in_tasks
from spark_jobs.runtime.row_progress import read_progress
from spark_jobs.runtime.spark_progress import watch_copy

SMALL_ROWS = 50_000
"""Copies up to this size are written by one task into one file."""

R = TypeVar("R")
ReadProgress = Callable[[], Progress | None]


@dataclass(frozen=True)
class Keep:
    """``kind``: of the results, a name. ``is_whole``: whether what a result names still exists."""

    kind: str
    is_whole: Callable[[Any], bool]


class EachSplit(Protocol):
    def __call__(self, function: Callable[[Rows], R], keep: Keep | None = None) -> WrittenSplits[R]:
        """Call ``function`` with the rows of each split, in the process that reads it: the function is pickled.
        ``keep``: if an attempt that continues this copy can use the results, which must be JSON-able then."""


@dataclass(frozen=True)
class CopiedRows:
    """``frame``: all rows as a Spark frame. ``in_driver``, ``in_tasks``: split by split as Arrow tables, by threads of
    the driver or by Spark's tasks; None where only a frame has all rows. ``progress``: how many rows have been read.
    ``order``: the columns by which the rows must still be sorted. ``high_cardinality``: columns with many distinct
    values. ``taken_from``: the table of another owner whose rows these are."""

    frame: Callable[[], DataFrame]
    in_driver: EachSplit | None = None
    in_tasks: EachSplit | None = None
    progress: ReadProgress = lambda: None
    order: tuple[str, ...] = ()
    high_cardinality: tuple[str, ...] = ()
    taken_from: TargetState | None = None


@contextmanager
def open_copied_rows(job: Job, work: TableWork, copy: Copy, began: datetime, kept: str = "") -> Iterator[CopiedRows]:
    """``began``: before the anchor of the copy. ``kept``: the id under which the results of splits are kept, empty if
    they are not."""
    table, store = work.task.table, job.log.store
    technical = technical_columns(copy, work.task.rule, began)
    with ExitStack() as opened:
        progress_readers = list[ReadProgress]()

        earlier = kept_rows(store, table, kept) if kept else 0

        def reported_rows() -> Progress | None:
            rows = earlier + read_progress(store, job.step, f"{table}-")
            return Progress(rows, of=copy.rows or None, kept=earlier) if rows else None

        reads = count(1)

        def begin_read() -> None:
            assert kept or next(reads) == 1 or copy.read.repeatable, "another read may return other rows"

        def frame() -> DataFrame:
            begin_read()
            if kept:
                return target_frame(work, copy, kept_frame(job, work, copy, kept), technical)
            rows = target_frame(work, copy, opened.enter_context(copy_rows(job, work, copy)), technical)
            progress_readers.append(watch_copy(work.spark, copy))
            return rows

        def each_split(run: RunSplits, possible: Callable[[], int]) -> EachSplit:
            def write(function: Callable[[Rows], R], keep: Keep | None = None) -> WrittenSplits[R]:
                begin_read()
                kept_results = None
                if keep is not None and kept:
                    kept_results = KeepResults(kept_splits_folder(table, kept, keep.kind), keep.is_whole)
                return write_splits(job, copy, work.task, technical, run, possible, function, kept_results)

            return write

        yield CopiedRows(
            frame,
            each_split(run_in_driver, lambda: DRIVER_SPLITS),
            each_split(run_in_tasks, lambda: job.cores),
            lambda: (progress_readers or [reported_rows])[-1](),
            sort_order(work.task, copy),
            copy.high_cardinality,
        )


@dataclass(frozen=True)
class ComparedRows:
    """Rows that are compared with those of the target before they are written. ``new``: as the source has them.
    ``copied``: the same rows, to be written."""

    new: DataFrame
    copied: CopiedRows
    read_end: ReadEnd


@contextmanager
def open_compared_rows(job: Job, work: TableWork, copy: Copy, began: datetime) -> Iterator[ComparedRows]:
    """Splits that may return other rows when they are read again are read once, for both."""
    with open_copied_rows(job, work, copy, began) as copied, copy_rows(job, work, copy) as new:
        if not copy.read.repeatable:
            technical = technical_columns(copy, work.task.rule, began)
            rows = target_frame(work, copy, new, technical)
            copied = CopiedRows(lambda: rows, progress=watch_copy(work.spark, copy))
        yield ComparedRows(new, copied, end_of_read(job, work))


def kept_frame(job: Job, work: TableWork, copy: Copy, kept: str) -> DataFrame:
    """The rows from files of staging, into which the splits are read first, each once."""
    definition, staging = job.step.definition, job.secrets.staging
    folder = kept_splits_folder(work.task.table, kept, "files")
    keep = KeepResults(kept_splits_folder(work.task.table, kept, ROWS), partial(_exists, definition, staging))
    with work.phase("read"):
        written = write_splits(
            job,
            copy,
            work.task,
            {},
            run_in_tasks,
            lambda: job.cores,
            partial(_write_split, definition, staging, folder),
            keep,
        )
    if paths := [job.log.store.url(path) for path in written.results if path]:
        return read_frame(work.spark, copy.schema, (), paths)
    return work.spark.createDataFrame([], ", ".join(column_list(copy.schema.columns)))


def _write_split(definition: Definition, staging: ConnectionInfo, folder: str, rows: Rows) -> str:
    """Runs in the process that reads the split. Returns the path of the file, empty if there are no rows."""
    path = f"{folder}/{uuid.uuid4().hex}.parquet"
    store = open_log(definition, staging).store
    written = False
    try:
        written = write_rows(store, path, map(as_in_file, rows))
    finally:
        if not written:
            store.delete(path)
    return path if written else ""


def _exists(definition: Definition, staging: ConnectionInfo, path: str) -> bool:
    return not path or open_log(definition, staging).store.exists(path)


def sort_order(task: TableTask, copy: Copy) -> tuple[str, ...]:
    """Each split is sorted by itself: splits follow the heap, which follows a growing key closely enough. A range
    shuffle would halve the rate."""
    order = tuple(name for name in task.cluster_by or copy.schema.key if name in copy.schema.names)
    return () if order and order[0] in copy.clustered_by else order


def target_frame(work: TableWork, copy: Copy, frame: DataFrame, technical: Mapping[str, pa.Scalar]) -> DataFrame:
    """The rows of the copy (``frame``) with the target's columns and order."""
    for name in copy.high_cardinality:  # building dictionaries that are then dropped would take a seventh of the time
        work.spark.conf.set(f"parquet.enable.dictionary#{name}", "false")
    for name, value in technical.items():
        frame = frame.withColumn(name, literal(value))
    if copy.rows <= SMALL_ROWS:
        frame = frame.coalesce(1)
    order = sort_order(work.task, copy)
    return frame.sortWithinPartitions(*(F.col(quoted(name)) for name in order)) if order else frame


def technical_columns(copy: Copy, rule: TableRule, began: datetime) -> dict[str, pa.Scalar]:
    """Columns besides the source's own, and their values."""
    columns = copied_columns(rule.history, copy.floor, began)
    if copy.schema.key:
        columns[ORDER] = pa.scalar(copy.floor)
    if rule.on_delete is OnDelete.SOFT:
        columns[DELETED] = pa.scalar(False)
    return columns


def literal(value: pa.Scalar) -> SparkColumn:
    """A value of a technical column."""
    kinds = {pa.bool_(): "boolean", pa.string(): "string"}
    return F.lit(value.as_py()).cast(kinds.get(value.type, "timestamp"))
