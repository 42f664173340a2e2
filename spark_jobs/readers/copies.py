"""The rows of a copy, whatever kind of copy it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from airflow_cdc_provider.connectors.source import Copy, JdbcRead, PagedRead
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from spark_jobs.failures import first_line
from spark_jobs.job import Job, TableWork
from spark_jobs.progress import reported
from spark_jobs.readers.jdbc import read_jdbc
from spark_jobs.readers.pages import read_pages
from spark_jobs.readers.told_failures import heard
from spark_jobs.stages import shares_read


@contextmanager
def copy_rows(job: Job, work: TableWork, copy: Copy) -> Iterator[DataFrame]:
    """All columns of the copy; of those that are not used a database is not asked.

    Shares are fetched here, once, into files of the executors: they are counted before anything is written, and a
    resync looks at them twice. Raises what reading a share raises, and SourceUnavailable (CPY005) where there are not
    as many rows as the source has counted, or where a database refuses to go on with the copy.
    """
    if isinstance(copy.read, JdbcRead):
        with _refusals_in_words(copy.read):
            yield read_jdbc(work.spark, copy.read, copy.schema.names)
        return
    definition, connection = job.step.definition, job.secrets.source
    frame = read_pages(work.spark, definition, connection, copy.read.shares, copy.schema)
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        progress = shares_read(work.spark, copy.rows)
        with work.phase("read"), heard(), reported(copy.schema.table, progress):
            _require_all(copy.read, copy.schema.table, frame.count())
        yield frame
    finally:
        frame.unpersist()


@contextmanager
def _refusals_in_words(read: JdbcRead) -> Iterator[None]:
    """Around all that reads the rows."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        problem = next((problem for text, problem in read.refusals.items() if text in first_line(error)), None)
        if problem is None:
            raise
        raise SourceUnavailable(problem) from None


def _require_all(read: PagedRead, table: str, rows: int) -> None:
    if read.rows is None or rows == read.rows:
        return
    raise SourceUnavailable(
        Problem(
            "CPY005",
            f"the copy of {table} did not come whole",
            where=table,
            found=f"{rows:,} rows",
            allowed=f"{read.rows:,} rows, as the source counted them",
            do="nothing: the next run copies again",
            data="nothing was written",
        )
    )
