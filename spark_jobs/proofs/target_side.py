"""The target's side of a comparison: the rows that must be in the source, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.proof.key_intervals import IntervalSums, KeyInterval
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.compare import Hash, intervals_sql, key_sql, live_rows, rows_sql
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import literal
from spark_jobs.copies.delete_guard import keeps_missing_rows, present_rows
from spark_jobs.copies.extents import rows_in_extent
from spark_jobs.copies.own_columns import own_columns
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.proofs.source_side import SourceSide
from spark_jobs.proofs.sums import frame_sums
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import open_writer

VIEW = "target_rows"


class Surplus(Enum):
    """The side that may have a row more often than the other, and how its number in the source less that in the target
    then compares with 0 in rows that differ."""

    NEITHER = "<>"
    TARGET = ">"
    SOURCE = "<"


@dataclass(frozen=True)
class TargetSide:
    """``schema``: the columns to compare."""

    work: TableWork
    schema: TableSchema
    hash: Hash
    surplus: Surplus

    def sums(self, intervals: Sequence[KeyInterval]) -> Sequence[IntervalSums]:
        return frame_sums(self.work.spark, VIEW, self.schema, self.hash, intervals)

    def hashes(self, intervals: Sequence[KeyInterval]) -> DataFrame:
        """Per row ``k``, a text that identifies it, and ``h``, hashes of its values."""
        return self.work.spark.sql(rows_sql(VIEW, self.schema, intervals))

    def key_columns(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> DataFrame:
        """The key columns of the rows, in the intervals, whose keys have these texts; each key once."""
        rows = self.work.spark.table(VIEW).where(F.expr(key_sql(self.schema)).isin(list(keys)))
        within = intervals_sql(self.schema, intervals)
        rows = rows.where(within) if within else rows
        return rows.select(*map(quoted, self.schema.key)).distinct()


def open_target_side(
    job: Job,
    work: TableWork,
    copy: Copy,
    source: SourceSide,
    schema: TableSchema,
    control: ControlRecord,
    version: int | None,
) -> TargetSide:
    """The table at ``version``, with this record."""
    extent = control.extent
    surplus = Surplus.NEITHER if extent.rows else Surplus.SOURCE
    surplus = Surplus.TARGET if keeps_missing_rows(job, work.task) and not schema.key else surplus
    rows = rows_in_extent(_rows(job, work, copy, source, control, version), work.task, extent)
    _with_missing_columns(rows, schema).createOrReplaceTempView(VIEW)
    return TargetSide(work, schema, source.hash, surplus)


def _rows(
    job: Job, work: TableWork, copy: Copy, source: SourceSide, control: ControlRecord, version: int | None
) -> DataFrame:
    """The rows that must be in the source, too. Where deletes are ignored: only rows whose key is in the source, or all
    rows of a table without a key."""
    task = work.task
    rows = own_columns(open_writer(job, work).read(task, version), control.schema)
    rows = current_rows(task.rule.history, rows, copy.schema.key).where(live_rows(task.rule.on_delete is OnDelete.SOFT))
    if not keeps_missing_rows(job, task) or not copy.schema.key:
        return rows
    return present_rows(copy.schema.key, rows, source.keys())


def _with_missing_columns(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Columns that the copy lacks are NULL in all its rows: a stream may not announce a new column before the next
    change of its table."""
    present = {name.lower() for name in rows.columns}
    missing = [column for column in schema.columns if column.name.lower() not in present]
    return rows.select("*", *(F.expr(f"{literal(None, column.type)} AS {quoted(column.name)}") for column in missing))
