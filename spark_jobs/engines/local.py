"""The local engine: the process of the driver, with Arrow. Spark is not started."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import StagedRows
from spark_jobs.copies.copied_rows import CopiedRows
from spark_jobs.engines.local_fold import fold_locally
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import CopyCommit, MergeCounts, WritesLocally, open_writer


class LocalEngine:
    def __init__(self, job: Job, work: TableWork) -> None:
        self._job, self._work = job, work

    def copy(self, task: TableTask, rows: CopiedRows) -> CopyCommit:
        return self._writer().copy_locally(task, rows)

    def fold(self, batch: BatchInput) -> BuiltBatch | None:
        return fold_locally(batch)

    def merge(self, task: TableTask, rows: StagedRows, record: ControlRecord) -> MergeCounts:
        return self._writer().merge_locally(task, rows, record)

    def _writer(self) -> WritesLocally:
        writer = open_writer(self._job, self._work)
        if not isinstance(writer, WritesLocally):
            raise NeedsSpark(f"only Spark writes to {self._job.target.type}")
        return writer
