"""The splits of a copy, read without Spark and passed to the function that writes them, in the process that reads
them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.copied.kept_copies import KeptSplit
from airflow_cdc_provider.connectors.copied.reading import read_split
from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.connectors.source_features import ReadsSplits
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step, TableTask
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.open_store import open_log
from spark_jobs.copies.kept_splits import KeepResults, require_not_paused
from spark_jobs.copies.split_frames import require_all
from spark_jobs.copies.throttle import Throttle
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.parallel import RunSplits
from spark_jobs.runtime.planned_source import open_planned_source, planned_hash_key
from spark_jobs.runtime.row_progress import ReportRows, progress_reporter

PAUSE_CHECK_S = 2.0

R = TypeVar("R")
Rows = Iterable[pa.Table]


@dataclass(frozen=True)
class WrittenSplits(Generic[R]):
    """The results for the splits of a copy, and their number of rows."""

    results: list[R]
    rows: int


@dataclass(frozen=True)
class _SplitTask(Generic[R]):
    """``name``: of the copy. Contains secrets: it travels only inside the serialised task."""

    step: Step
    secrets: Secrets
    split: str
    number: int
    schema: TableSchema
    rule: TableRule
    name: str
    technical: Mapping[str, pa.Scalar]
    function: Callable[[Rows], R]
    rows_per_second: float | None
    keep: KeepResults | None


@dataclass(frozen=True)
class _SplitResult(Generic[R]):
    """A ``CdcError`` travels as a value: Spark would turn an exception into text."""

    result: R | None
    error: CdcError | None
    rows: int
    peak_bytes: int


def write_splits(
    job: Job,
    copy: Copy,
    of: TableTask,
    technical: Mapping[str, pa.Scalar],
    run: RunSplits,
    possible: Callable[[], int],
    function: Callable[[Rows], R],
    keep: KeepResults | None = None,
) -> WrittenSplits[R]:
    """Call ``function``, where ``run`` does, with the rows and technical columns of each split. ``possible``: how many
    splits ``run`` reads at once. ``keep``: where the results are kept, which must be JSON-able then; splits with a
    result are not read again. Raises the errors of reading a split, SourceUnavailable (CPY005) where the number of rows
    differs from the source's count, and Fenced (CPY020) if the copy is paused."""
    step = replace(job.step, tables=())
    rule = of.rule
    readers = rule.snapshot.readers(len(copy.read.splits), possible())
    rate = rule.snapshot.rows_per_second(readers)
    tasks = [
        _SplitTask(step, job.secrets, split, number, copy.schema, of.rule, of.table, technical, function, rate, keep)
        for number, split in enumerate(copy.read.splits)
    ]
    results: list[_SplitResult[R]] = run(job, _run_task, tasks, readers if rule.snapshot.parallel or rate else None)
    for result in results:
        if result.error is not None:
            raise result.error
    rows = sum(result.rows for result in results)
    require_all(copy.read, copy.schema.table, rows)
    peaks = [job.peak_memory_bytes.get("share", 0), *(result.peak_bytes for result in results)]
    job.peak_memory_bytes["share"] = max(peaks)
    return WrittenSplits([result.result for result in results if result.result is not None], rows)


def _run_task(task: _SplitTask[R]) -> _SplitResult[R]:
    """Runs in the process that reads the split."""
    reader, error = _CountingReader(task), None
    try:
        kept = _kept_or_read(task, reader)
    except CdcError as failure:
        kept, error = KeptSplit(reader.rows, None), failure
    return _SplitResult(kept.result, error, kept.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _kept_or_read(task: _SplitTask[R], reader: _CountingReader) -> KeptSplit:
    if task.keep is not None and (found := task.keep.find(reader.store, task.number)) is not None:
        return found
    result = task.function(reader.tables())
    read = KeptSplit(reader.rows, result)
    return task.keep.keep(reader.store, task.number, read) if task.keep is not None else read


class _CountingReader:
    def __init__(self, task: _SplitTask[Any]) -> None:
        self.rows = 0
        self._task = task
        self.store = open_log(task.step.definition, task.secrets.staging).store

    def tables(self) -> Iterator[pa.Table]:
        """Raises Fenced (CPY020) soon after the copy was paused."""
        task = self._task
        require_not_paused(self.store, task.step.definition.name, task.name)
        source = open_planned_source(task.step, task.secrets)
        assert isinstance(source, ReadsSplits), "only such sources have splits"
        target_schema, report = arrow_schema(task.schema), self._reporter()
        key = planned_hash_key(task.step, task.secrets)
        throttle = Throttle(task.rows_per_second)
        for table in read_split(source, task.split, task.schema, task.rule, key):
            self.rows += len(table)
            report(self.rows)
            throttle.passed(len(table))
            yield _add_columns(task.technical, table.cast(target_schema))

    def _reporter(self) -> ReportRows:
        """Reports the rows, and looks for a pause, at intervals."""
        task, next_check = self._task, time.monotonic() + PAUSE_CHECK_S
        report_rows = progress_reporter(self.store, task.step, f"{task.name}-{task.number:04d}")

        def report(rows: int) -> None:
            nonlocal next_check
            report_rows(rows)
            if time.monotonic() >= next_check:
                next_check = time.monotonic() + PAUSE_CHECK_S
                require_not_paused(self.store, task.step.definition.name, task.name)

        return report


def _add_columns(technical: Mapping[str, pa.Scalar], table: pa.Table) -> pa.Table:
    for name, value in technical.items():
        column = pa.repeat(value, len(table))
        if value.is_valid and pa.types.is_string(value.type):  # a constant text takes no memory as a dictionary
            numbers = pa.repeat(pa.scalar(0, pa.int8()), len(table))
            column = pa.DictionaryArray.from_arrays(numbers, pa.array([value.as_py()], pa.string()))
        table = table.append_column(name, column)
    return table
