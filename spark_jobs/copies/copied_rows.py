"""The rows of a copy on their way into a target: with the technical columns, in the target's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.split_copy import Rows, WrittenSplit, write_splits
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.progress import Progress
from spark_jobs.runtime.row_progress import read_progress
from spark_jobs.runtime.spark_progress import watched

SMALL_ROWS = 50_000
"""Copies up to this size are written by one task into one file."""

R = TypeVar("R")
Look = Callable[[], Progress | None]


class EachSplit(Protocol):
    def __call__(self, function: Callable[[Rows], R]) -> WrittenSplit[R]:
        """Give each share's rows to ``function``, wherever that runs: it is sent there."""


@dataclass(frozen=True)
class CopiedRows:
    """``frame``: all of them, as Spark reads them. ``each_share``: share by share, without Spark; None where only a
    frame has them whole. ``progress``: how far whoever reads them is. ``order``: the columns that they are to be sorted
    by, and are not yet. ``high_cardinality``: columns that hold many different values."""

    frame: Callable[[], DataFrame]
    each_split: EachSplit | None = None
    progress: Look = lambda: None
    order: tuple[str, ...] = ()
    high_cardinality: tuple[str, ...] = ()


@contextmanager
def rows_of(job: Job, work: TableWork, copy: Copy) -> Iterator[CopiedRows]:
    table = copy.schema.table
    with ExitStack() as opened:
        looks = list[Look]()

        def noted_rows() -> Progress | None:
            rows = read_progress(job.log.store, job.step, f"{table}-")
            return Progress(rows, of=copy.rows or None) if rows else None

        def frame() -> DataFrame:
            rows = framed(work, copy, opened.enter_context(copy_rows(job, work, copy)))
            looks.append(watched(work.spark, copy))
            return rows

        def each_share(function: Callable[[Rows], R]) -> WrittenSplit[R]:
            return write_splits(job, copy, technical(copy, work.task.rule), function)

        order = order_of(work.task.rule, copy)
        yield CopiedRows(frame, each_share, lambda: (looks or [noted_rows])[-1](), order, copy.high_cardinality)


def order_of(rule: TableRule, copy: Copy) -> tuple[str, ...]:
    """Each share stands in the target's order, or nearly so: the shares follow the heap, which follows a growing key
    closely enough. A range shuffle would cost half the rate."""
    order = tuple(name for name in rule.cluster_by or copy.schema.key if name in copy.schema.names)
    return () if order and order[0] in copy.clustered_by else order


def framed(work: TableWork, copy: Copy, frame: DataFrame) -> DataFrame:
    """``frame``, the rows of the copy, as the target wants them."""
    for name in copy.high_cardinality:  # a seventh of a copy's time would go into dictionaries that are then given up
        work.spark.conf.set(f"parquet.enable.dictionary#{name}", "false")
    for name, value in technical(copy, work.task.rule).items():
        frame = frame.withColumn(name, F.lit(value))
    if copy.rows <= SMALL_ROWS:
        frame = frame.coalesce(1)
    order = order_of(work.task.rule, copy)
    return frame.sortWithinPartitions(*(F.col(quoted(name)) for name in order)) if order else frame


def technical(copy: Copy, rule: TableRule) -> dict[str, str | bool]:
    """Columns besides the source's own, and their values."""
    columns = dict[str, str | bool]()
    if copy.schema.key:
        columns[ORDER] = copy.floor
    if rule.on_delete is OnDelete.SOFT:
        columns[DELETED] = False
    return columns
