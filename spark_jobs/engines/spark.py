"""The Spark engine: Spark's tasks."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.engines.spark_fold import SparkFold
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import CopyCommit, MergeCounts, TargetWriter, open_writer


class SparkEngine:
    def __init__(self, job: Job, work: TableWork) -> None:
        self._job, self._work = job, work

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        return self._writer().copy(task, rows)

    def fold(self, batch: BatchInput) -> BuiltBatch | None:
        return SparkFold(batch).build()

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        return self._writer().merge(task, rows, record)

    def _writer(self) -> TargetWriter:
        return open_writer(self._job, self._work)
