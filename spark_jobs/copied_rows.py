"""The rows of a copy on their way into a target: with the technical columns, in the target's order."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import Copy, SharesRows
from airflow_cdc_provider.core.connections import Secrets
from airflow_cdc_provider.core.definition import OnDelete, TableRule
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.merge import DELETED, ORDER
from airflow_cdc_provider.core.steps import Step
from airflow_cdc_provider.core.tables import TableSchema
from airflow_cdc_provider.staging.places import open_log
from spark_jobs.job import Job, TableWork
from spark_jobs.noted import Note, noted, noted_so_far
from spark_jobs.progress import Progress
from spark_jobs.readers.copies import copy_rows, require_all
from spark_jobs.readers.jdbc import quoted
from spark_jobs.side_by_side import side_by_side
from spark_jobs.stages import watched

SMALL_ROWS = 50_000
"""Copies up to this size are written by one task into one file."""

R = TypeVar("R")
Rows = Iterable[pa.Table]
Look = Callable[[], Progress | None]


class EachShare(Protocol):
    def __call__(self, function: Callable[[Rows], R]) -> Written[R]:
        """Give each share's rows to ``function``, wherever that runs: it is sent there."""


@dataclass(frozen=True)
class Written(Generic[R]):
    """What became of the shares of a copy, and how many rows they held."""

    told: list[R]
    rows: int


@dataclass(frozen=True)
class CopiedRows:
    """``frame``: all of them, as Spark reads them. ``each_share``: share by share, without Spark; None where only a
    frame has them whole. ``progress``: how far whoever reads them is. ``order``: the columns that they are to be sorted
    by, and are not yet. ``various``: columns that hold many different values."""

    frame: Callable[[], DataFrame]
    each_share: EachShare | None = None
    progress: Look = lambda: None
    order: tuple[str, ...] = ()
    various: tuple[str, ...] = ()


@contextmanager
def rows_of(job: Job, work: TableWork, copy: Copy) -> Iterator[CopiedRows]:
    table = copy.schema.table
    with ExitStack() as opened:
        looks = list[Look]()

        def noted_rows() -> Progress:
            return Progress(noted_so_far(job.log.store, job.step, f"{table}-"), of=copy.rows or None)

        def frame() -> DataFrame:
            rows = framed(work, copy, opened.enter_context(copy_rows(job, work, copy)))
            looks.append(watched(work.spark, copy))
            return rows

        def each_share(function: Callable[[Rows], R]) -> Written[R]:
            return _given_to(job, work, copy, function)

        order = order_of(work.task.rule, copy)
        yield CopiedRows(frame, each_share, lambda: (looks or [noted_rows])[-1](), order, copy.various)


def order_of(rule: TableRule, copy: Copy) -> tuple[str, ...]:
    """Each share stands in the target's order, or nearly so: the shares follow the heap, which follows a growing key
    closely enough. A range shuffle would cost half the rate."""
    order = tuple(name for name in rule.cluster_by or copy.schema.key if name in copy.schema.names)
    return () if order and order[0] in copy.in_order else order


def framed(work: TableWork, copy: Copy, frame: DataFrame) -> DataFrame:
    """``frame``, the rows of the copy, as the target wants them."""
    for name in copy.various:  # a seventh of a copy's time would go into dictionaries that are then given up
        work.spark.conf.set(f"parquet.enable.dictionary#{name}", "false")
    for name, value in _technical(copy, work.task.rule).items():
        frame = frame.withColumn(name, F.lit(value))
    if copy.rows <= SMALL_ROWS:
        frame = frame.coalesce(1)
    order = order_of(work.task.rule, copy)
    return frame.sortWithinPartitions(*(F.col(quoted(name)) for name in order)) if order else frame


def _technical(copy: Copy, rule: TableRule) -> dict[str, str | bool]:
    columns = dict[str, str | bool]()
    if copy.schema.key:
        columns[ORDER] = copy.floor
    if rule.on_delete is OnDelete.SOFT:
        columns[DELETED] = False
    return columns


@dataclass(frozen=True)
class _Share(Generic[R]):
    """Holds secrets: it travels inside the serialised task only."""

    step: Step
    secrets: Secrets
    share: str
    number: int
    schema: TableSchema
    technical: Mapping[str, str | bool]
    function: Callable[[Rows], R]


@dataclass(frozen=True)
class _Told(Generic[R]):
    """A failure with words travels as a value: as an exception Spark would turn it into text."""

    result: R | None
    error: CdcError | None
    rows: int
    peak_bytes: int


def _given_to(job: Job, work: TableWork, copy: Copy, function: Callable[[Rows], R]) -> Written[R]:
    step, technical = replace(job.step, tables=()), _technical(copy, work.task.rule)
    shares = [
        _Share(step, job.secrets, share, number, copy.schema, technical, function)
        for number, share in enumerate(copy.read.shares)
    ]
    told: list[_Told[R]] = side_by_side(job, _read_share, shares)
    for one in told:
        if one.error is not None:
            raise one.error
    rows = sum(one.rows for one in told)
    require_all(copy.read, copy.schema.table, rows)
    job.peak_memory_bytes["share"] = max((one.peak_bytes for one in told), default=0)
    return Written([one.result for one in told if one.result is not None], rows)


def _read_share(share: _Share[R]) -> _Told[R]:
    """Runs wherever the share is done."""
    counted = _Counted(share)
    try:
        result, error = share.function(counted.tables()), None
    except CdcError as failure:
        result, error = None, failure
    return _Told(result, error, counted.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


class _Counted:
    def __init__(self, share: _Share[Any]) -> None:
        self.rows = 0
        self._share = share

    def tables(self) -> Iterator[pa.Table]:
        share = self._share
        source = open_source(share.step.definition, share.secrets.source)
        assert isinstance(source, SharesRows), "only such sources have shares"
        wanted, note = arrow_schema(share.schema), self._note()
        for table in source.read_share(share.share, share.schema):
            self.rows += len(table)
            note(self.rows)
            yield _with(share.technical, table.cast(wanted))

    def _note(self) -> Note:
        store = open_log(self._share.step.definition, self._share.secrets.staging).store
        return noted(store, self._share.step, f"{self._share.schema.table}-{self._share.number:04d}")


def _with(technical: Mapping[str, str | bool], table: pa.Table) -> pa.Table:
    for name, value in technical.items():
        column = pa.repeat(pa.scalar(value), len(table))
        if isinstance(value, str):  # a text that repeats takes no room as a dictionary
            numbers = pa.repeat(pa.scalar(0, pa.int8()), len(table))
            column = pa.DictionaryArray.from_arrays(numbers, pa.array([value]))
        table = table.append_column(name, column)
    return table
