"""The source's side of a comparison: sums per interval of the key, row hashes, keys.

A database computes them itself, unless the rule of the table changes columns. Rows that are read in splits are hashed
in Spark, like the target's side, and all of them are read: an error in their conversion is not detected, every other
difference is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.source_features import RowProofs, TableSnapshot
from airflow_cdc_provider.core.proof.key_intervals import IntervalSums, Key, KeyInterval, has_ordered_key
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.sparksql.compare import Hash, key_sql, rows_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.copies.split_reads import read_splits
from spark_jobs.proofs.sums import frame_sums, sums_of
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.remote_errors import from_remote_failure

VIEW = "source_rows"


class SourceSide(Protocol):
    """``hash`` is the hash that sums add up; ``rows``: about how many there are. ``reads_all``: whether all of them are
    read, however few differ."""

    hash: ClassVar[Hash]
    reads_all: ClassVar[bool]

    @property
    def rows(self) -> int: ...

    def keys(self) -> DataFrame:
        """Of the copy's rows."""

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]: ...

    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]: ...

    def hashes(self, intervals: Sequence[KeyInterval]) -> DataFrame:
        """Per row ``k``, a text that identifies it, and ``h``, hashes of its values."""

    def find(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> DataFrame:
        """The rows of the copy, in the intervals, whose keys have these texts."""


@contextmanager
def open_source_side(job: Job, work: TableWork, snapshot: TableSnapshot, schema: TableSchema) -> Iterator[SourceSide]:
    """Readable while the context and the snapshot are open. ``schema``: the columns to compare."""
    copy = snapshot.copy
    if snapshot.proofs is not None and schema == copy.schema:
        with from_remote_failure():
            yield _DatabaseSide(job, work, copy, snapshot.proofs)
        return
    with copy_rows(job, work, copy) as rows:
        yield _SplitSide(work.spark, rows, copy, schema)


@dataclass(frozen=True)
class _DatabaseSide:
    hash: ClassVar = Hash.MD5
    reads_all: ClassVar = False
    job: Job
    work: TableWork
    copy: Copy
    proofs: RowProofs

    @property
    def schema(self) -> TableSchema:
        return self.copy.schema

    @property
    def rows(self) -> int:
        return self.copy.rows

    def keys(self) -> DataFrame:
        return self._read(self.copy.read, self.schema, self.schema.key)

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        return self.proofs.cuts(interval, rows) if has_ordered_key(self.schema) else ()

    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]:
        return sums_of(self.proofs.sums(intervals), intervals, self.schema)

    def hashes(self, intervals: Sequence[KeyInterval]) -> DataFrame:
        columns = tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("k", "h"))
        proof = replace(self.schema, columns=columns)
        return self._read(self.proofs.hashes(intervals), proof, proof.names)

    def find(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> DataFrame:
        return self._read(self.proofs.rows(intervals, keys), self.schema, self.schema.names)

    def _read(self, read: SplitRead | pa.Table, schema: TableSchema, names: Sequence[str]) -> DataFrame:
        if not isinstance(read, SplitRead):
            return self.work.spark.createDataFrame(read)
        selected = replace(schema, columns=tuple(map(schema.column, names)))
        job, work = self.job, self.work
        return read_splits(work.spark, job.step, job.secrets, read.splits, selected, work.task.rule)


@dataclass(frozen=True)
class _SplitSide:
    hash: ClassVar = Hash.XX
    reads_all: ClassVar = True
    spark: SparkSession
    frame: DataFrame
    copy: Copy
    schema: TableSchema

    @property
    def rows(self) -> int:
        return 0

    def keys(self) -> DataFrame:
        return self.frame.select(*map(quoted, self.copy.schema.key))

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        return ()

    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]:
        return frame_sums(self.spark, self._view(), self.schema, self.hash, intervals)

    def hashes(self, intervals: Sequence[KeyInterval]) -> DataFrame:
        return self.spark.sql(rows_sql(self._view(), self.schema, intervals))

    def find(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> DataFrame:
        return self.frame.where(F.expr(key_sql(self.copy.schema)).isin(list(keys)))

    def _view(self) -> str:
        self.frame.createOrReplaceTempView(VIEW)
        return VIEW
