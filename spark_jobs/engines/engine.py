"""The work of an engine on one table."""

from __future__ import annotations

from typing import Protocol

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.writers.writer import CopyCommit, MergeCounts


class Engine(Protocol):
    """Both engines give the same result. The local one raises NeedsSpark for what it does not support."""

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        """As ``TargetWriter.copy``."""

    def fold(self, batch: BatchInput) -> BuiltBatch | None:
        """Write the rows to merge. A table with records gets a batch even if no row changes: its commit moves the
        cursor. None where there are no records and no decision helped. Raises Stopped where a bad record must not be
        quarantined, SourceUnavailable where only rows to be fetched are left and the source returns none."""

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        """As ``TargetWriter.merge``."""
