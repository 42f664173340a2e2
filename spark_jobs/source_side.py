"""What the source says of a table in a proof: sums of hashes, hashes of rows, keys.

A database vouches for its rows itself. Rows that come in shares are hashed here, in the words of the target's side: a
mistake of their conversion does not show, everything else does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from pyspark.sql import DataFrame, Row, SparkSession

from airflow_cdc_provider.connectors.postgres.compare import checksums_query, rows_query
from airflow_cdc_provider.connectors.source import Copy, JdbcRead
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema
from airflow_cdc_provider.targets.sparksql.compare import Hash, checksums_sql, rows_sql
from spark_jobs.job import Job, TableWork
from spark_jobs.readers.copies import copy_rows
from spark_jobs.readers.jdbc import read_jdbc

VIEW = "source_rows"


class SourceSide(Protocol):
    """``rows`` are those of the copy, ``hash`` is what checksums add up; ``schema`` has the columns to compare."""

    hash: ClassVar[Hash]

    @property
    def rows(self) -> DataFrame: ...

    def checksums(self, schema: TableSchema) -> Row:
        """``n`` rows, and per column ``c0``, ``c1`` … the sum of its hashes."""

    def hashes(self, schema: TableSchema) -> DataFrame:
        """Per row ``k``, the text that tells it from others, and ``h``, a hash of all its values."""


@contextmanager
def source_side(job: Job, work: TableWork, copy: Copy) -> Iterator[SourceSide]:
    """Readable while the context is open, and the copy with it."""
    if isinstance(copy.read, JdbcRead):
        yield _Database(work.spark, work.task, copy.read, copy.schema)
        return
    with copy_rows(job, work, copy) as rows:
        yield _Fetched(work.spark, rows)


@dataclass(frozen=True)
class _Database:
    hash: ClassVar = Hash.MD5
    spark: SparkSession
    task: TableTask
    read: JdbcRead
    copied: TableSchema

    @property
    def rows(self) -> DataFrame:
        return read_jdbc(self.spark, self.read, self.copied.names)

    def checksums(self, schema: TableSchema) -> Row:
        read = replace(self.read, query=checksums_query(self.task, schema), predicates=("TRUE",), casts={})
        sums = [f"c{number}" for number in range(len(schema.columns))]
        return read_jdbc(self.spark, read, ["n", *sums]).collect()[0]

    def hashes(self, schema: TableSchema) -> DataFrame:
        return read_jdbc(self.spark, replace(self.read, query=rows_query(self.task, schema), casts={}), ["k", "h"])


@dataclass(frozen=True)
class _Fetched:
    hash: ClassVar = Hash.XX
    spark: SparkSession
    rows: DataFrame

    def checksums(self, schema: TableSchema) -> Row:
        self.rows.createOrReplaceTempView(VIEW)
        return self.spark.sql(checksums_sql(VIEW, schema, self.hash)).collect()[0]

    def hashes(self, schema: TableSchema) -> DataFrame:
        self.rows.createOrReplaceTempView(VIEW)
        return self.spark.sql(rows_sql(VIEW, schema))
