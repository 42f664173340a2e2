"""How Spark writes to each kind of target: a registry from the target's type to a writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, cast

from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.steps import Batch, TableTask
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows

WRITERS: dict[str, str] = {
    "delta": "spark_jobs.writers.delta:DeltaWriter",
    "iceberg": "spark_jobs.writers.iceberg:IcebergWriter",
    "mysql": "spark_jobs.writers.database:DatabaseWriter",
    "postgres": "spark_jobs.writers.database:DatabaseWriter",
}


@dataclass(frozen=True)
class MergeCounts:
    """Target rows that one merge touched."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


CopyCommit = Callable[[ControlRecord], int]
"""Commits a copy under this record; the number of rows written."""


class TargetWriter(Protocol):
    """Every method that writes names its commit in the change log first, commits data and control record at once, and
    reads back who won. Raises Fenced where somebody newer owns the table."""

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """Create the table, or replace all its rows and columns, as ``task.schema`` has them. Rows that may be others
        when they are read again have been read when this returns; what it returns makes them the table."""

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """Apply staged rows."""

    def read(self, task: TableTask, version: int | None) -> DataFrame:
        """The table as it is, or as it was at a version of its own."""

    def maintain(self, task: TableTask, keep: timedelta) -> tuple[str, ...]:
        """Do the chores that the table's figures ask for, none by which a version younger than ``keep``, or the cursor,
        would be lost; their names. Each is a commit that changes no row, or none at all."""


def merge_plan(task: TableTask, batch: Batch, added: tuple[Column, ...]) -> MergePlan:
    """``added``: the columns new to the target, as it must take them."""
    return MergePlan(
        batch.schema,
        task.rule.on_delete,
        batch.partial,
        batch.truncated,
        batch.repair,
        added,
        tuple((low, high) for _, low, high in batch.bounds),
    )


def open_writer(kind: str, session: Callable[[], SparkSession], tables: TargetTables) -> TargetWriter:
    """``session``: asked for when something needs Spark."""
    return cast(TargetWriter, load_class("writer", kind, WRITERS)(session, tables))
