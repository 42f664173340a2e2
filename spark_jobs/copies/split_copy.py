"""The shares of a copy, read without Spark and given to whoever writes them, wherever that is."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import Copy, ReadsSplits
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.open_store import open_log
from spark_jobs.copies.split_frames import require_all
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.parallel import in_parallel
from spark_jobs.runtime.row_progress import Note, record_progress

R = TypeVar("R")
Rows = Iterable[pa.Table]


@dataclass(frozen=True)
class WrittenSplit(Generic[R]):
    """What became of the shares of a copy, and how many rows they held."""

    told: list[R]
    rows: int


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
class _SplitResult(Generic[R]):
    """A failure with words travels as a value: as an exception Spark would turn it into text."""

    result: R | None
    error: CdcError | None
    rows: int
    peak_bytes: int


def write_splits(
    job: Job, copy: Copy, technical: Mapping[str, str | bool], function: Callable[[Rows], R]
) -> WrittenSplit[R]:
    """Each share of the copy, with these columns besides, given to ``function``. Raises what reading a share raises,
    and SourceUnavailable (CPY005) where there are not as many rows as the source has counted."""
    step = replace(job.step, tables=())
    shares = [
        _Share(step, job.secrets, share, number, copy.schema, technical, function)
        for number, share in enumerate(copy.read.splits)
    ]
    told: list[_SplitResult[R]] = in_parallel(job, _read_split, shares)
    for one in told:
        if one.error is not None:
            raise one.error
    rows = sum(one.rows for one in told)
    require_all(copy.read, copy.schema.table, rows)
    peaks = [job.peak_memory_bytes.get("share", 0), *(one.peak_bytes for one in told)]
    job.peak_memory_bytes["share"] = max(peaks)
    return WrittenSplit([one.result for one in told if one.result is not None], rows)


def _read_split(share: _Share[R]) -> _SplitResult[R]:
    """Runs wherever the share is done."""
    counted = _Counted(share)
    try:
        result, error = share.function(counted.tables()), None
    except CdcError as failure:
        result, error = None, failure
    return _SplitResult(result, error, counted.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


class _Counted:
    def __init__(self, share: _Share[Any]) -> None:
        self.rows = 0
        self._share = share

    def tables(self) -> Iterator[pa.Table]:
        share = self._share
        source = open_source(share.step.definition, share.secrets.source)
        assert isinstance(source, ReadsSplits), "only such sources have shares"
        wanted, note = arrow_schema(share.schema), self._note()
        for table in source.read_split(share.share, share.schema):
            self.rows += len(table)
            note(self.rows)
            yield _with(share.technical, table.cast(wanted))

    def _note(self) -> Note:
        store = open_log(self._share.step.definition, self._share.secrets.staging).store
        return record_progress(store, self._share.step, f"{self._share.schema.table}-{self._share.number:04d}")


def _with(technical: Mapping[str, str | bool], table: pa.Table) -> pa.Table:
    for name, value in technical.items():
        column = pa.repeat(pa.scalar(value), len(table))
        if isinstance(value, str):  # a text that repeats takes no room as a dictionary
            numbers = pa.repeat(pa.scalar(0, pa.int8()), len(table))
            column = pa.DictionaryArray.from_arrays(numbers, pa.array([value]))
        table = table.append_column(name, column)
    return table
