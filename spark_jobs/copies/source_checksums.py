"""The source's side of a verify: checksums, row hashes, keys.

A database computes them itself, unless the rule of the table changes columns. Rows that are read in splits are hashed
in Spark, like the target's side: an error in their conversion is not detected, every other difference is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.source import Copy, SplitRead
from airflow_cdc_provider.connectors.source_features import ProvesRows
from airflow_cdc_provider.core.columns.copied import changes_columns
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.sparksql.compare import Hash, checksums_sql, rows_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.copies.split_reads import read_splits
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.remote_errors import from_remote_failure

VIEW = "source_rows"


class SourceSide(Protocol):
    """``keys`` are those of the copy's rows; ``hash`` is the hash that checksums add up; ``schema``: the columns to
    compare."""

    hash: ClassVar[Hash]

    def keys(self) -> DataFrame: ...

    def checksums(self, schema: TableSchema) -> Mapping[str, Any]:
        """``n`` rows, and per column ``c0``, ``c1`` … the sum of its hashes."""

    def hashes(self, schema: TableSchema) -> DataFrame:
        """Per row: ``k``, a text that identifies it, and ``h``, a hash of all its values."""


@contextmanager
def open_source_side(job: Job, work: TableWork, task: TableTask, copy: Copy) -> Iterator[SourceSide]:
    """Readable while the context and the copy are open. ``task``: that of the copy."""
    if isinstance(job.source, ProvesRows) and not changes_columns(task.rule):
        with from_remote_failure():
            yield _DatabaseSide(job, work, task, copy, job.source)
        return
    with copy_rows(job, work, copy) as rows:
        yield _SplitSide(work.spark, rows, copy.schema)


@dataclass(frozen=True)
class _DatabaseSide:
    hash: ClassVar = Hash.MD5
    job: Job
    work: TableWork
    task: TableTask
    copy: Copy
    source: ProvesRows

    def keys(self) -> DataFrame:
        schema = self.copy.schema
        return self._read(self.copy.read, schema, schema.key)

    def checksums(self, schema: TableSchema) -> Mapping[str, Any]:
        return self.source.checksums(self.copy, self.task, schema)

    def hashes(self, schema: TableSchema) -> DataFrame:
        columns = tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("k", "h"))
        proof = replace(schema, columns=columns)
        return self._read(self.source.hashes(self.copy, self.task, schema), proof, proof.names)

    def _read(self, read: SplitRead, schema: TableSchema, names: Sequence[str]) -> DataFrame:
        selected = replace(schema, columns=tuple(map(schema.column, names)))
        job, work = self.job, self.work
        return read_splits(work.spark, job.step.definition, job.secrets, read.splits, selected, self.task.rule)


@dataclass(frozen=True)
class _SplitSide:
    hash: ClassVar = Hash.XX
    spark: SparkSession
    rows: DataFrame
    schema: TableSchema

    def keys(self) -> DataFrame:
        return self.rows.select(*map(quoted, self.schema.key))

    def checksums(self, schema: TableSchema) -> Mapping[str, Any]:
        self.rows.createOrReplaceTempView(VIEW)
        return self.spark.sql(checksums_sql(VIEW, schema, self.hash)).collect()[0].asDict()

    def hashes(self, schema: TableSchema) -> DataFrame:
        self.rows.createOrReplaceTempView(VIEW)
        return self.spark.sql(rows_sql(VIEW, schema))
