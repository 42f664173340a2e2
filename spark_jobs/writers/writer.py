"""The protocol of writers, and the registry from a target's type to its writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, cast, runtime_checkable

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.decisions.steps import Batch, TableTask
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.own_rows import own_rows
from airflow_cdc_provider.core.table.schema import Column
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.runtime.job import Job, TableWork

WRITERS: dict[str, str] = {
    "bigquery": "spark_jobs.writers.database:DatabaseWriter",
    "delta": "spark_jobs.writers.delta:DeltaWriter",
    "iceberg": "spark_jobs.writers.iceberg:IcebergWriter",
    "mysql": "spark_jobs.writers.database:DatabaseWriter",
    "postgres": "spark_jobs.writers.database:DatabaseWriter",
    "redshift": "spark_jobs.writers.database:DatabaseWriter",
    "snowflake": "spark_jobs.writers.database:DatabaseWriter",
    "spanner": "spark_jobs.writers.spanner:SpannerWriter",
}


@dataclass(frozen=True)
class MergeCounts:
    """Target rows by effect of a merge."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


CopyCommit = Callable[[ControlRecord], int]
"""Commits a copy under this record and returns the number of rows written."""


class TargetWriter(Protocol):
    """Every method that writes records its commit in the change log first, commits data and control record at once, and
    reads back whose commit succeeded. Raises Fenced if a newer writer owns the table."""

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """Create the table, or replace all its rows and columns by those of ``task.schema``. Rows that may change
        between two reads are read when this returns; the result commits them."""

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """Apply staged rows."""

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        """The current table, or one of its versions."""

    def taken_names(self, task: TableTask, added: Sequence[Column], with_values: bool) -> list[str]:
        """Names of the columns ``added`` that the table has with another type, as far as the target shows types;
        ``with_values``: or with any value."""

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        """Run the maintenance that the table's statistics require, without losing the cursor or versions younger than
        ``keep``; returns the names of the tasks. No commit of maintenance changes a row."""


@runtime_checkable
class WritesLocally(Protocol):
    """A writer that needs Spark neither for small copies nor for small batches. Results and errors are those of
    ``TargetWriter``; besides, both methods raise NeedsSpark."""

    def copy_locally(self, task: TableTask, rows: CopiedRows) -> CopyCommit: ...

    def merge_locally(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts: ...


def merge_plan(task: TableTask, batch: Batch, added: tuple[Column, ...]) -> MergePlan:
    """``added``: the columns that are new to the target."""
    return MergePlan(
        batch.schema,
        OnDelete.IGNORE if task.rule.ignores_deletes else task.rule.on_delete,
        batch.partial,
        batch.truncated,
        batch.repair,
        added,
        tuple((low, high) for _, low, high in batch.bounds),
        own_rows(task.rule),
        batch.truncated_at,
    )


def open_writer(job: Job, work: TableWork) -> TargetWriter:
    """Of a table, whose job has one target. The writer starts Spark when it needs it."""
    return cast(TargetWriter, load_class("writer", job.target.type, WRITERS)(work.session, job.tables))
