"""The rows of a copy as a Spark frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.core.errors import SourceUnavailable
from spark_jobs.copies.split_reads import read_splits
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.progress import report_progress
from spark_jobs.runtime.remote_errors import from_remote_failure
from spark_jobs.runtime.row_progress import save_progress
from spark_jobs.runtime.spark_progress import watch_splits


@contextmanager
def copy_rows(job: Job, work: TableWork, copy: Copy) -> Iterator[DataFrame]:
    """All columns of the copy. Splits that may return other rows when they are read again are read once, into files of
    the executors: the rows are counted before anything is written, then compared and written. Raises the errors of
    reading a split, and SourceUnavailable (CPY005) where the number of rows differs from the source's count."""
    frame = read_splits(work.spark, job.step, job.secrets, copy.read.splits, copy.schema, work.task.rule)
    if copy.read.repeatable:
        with from_remote_failure():
            yield frame
        return
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        progress = watch_splits(work.spark, copy.rows)
        report = report_progress(copy.schema.table, progress, partial(save_progress, job, work.task))
        with work.phase("read"), from_remote_failure(), report:
            require_all(copy.read, copy.schema.table, frame.count())
        yield frame
    finally:
        frame.unpersist()


def require_all(read: SplitRead, table: str, rows: int) -> None:
    """Raises SourceUnavailable (CPY005) where the number of rows differs from the source's count."""
    if read.rows is None or rows == read.rows:
        return
    raise SourceUnavailable.of(
        "CPY005",
        f"the copy of {table} is incomplete",
        where=table,
        found=f"{rows:,} rows",
        allowed=f"{read.rows:,} rows, as the source counted them",
        do="nothing: the next run copies the table again",
        data="nothing was written",
    )
