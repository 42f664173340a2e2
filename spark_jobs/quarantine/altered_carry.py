"""The carry-over of a table whose columns are altered before a batch: its records lose the dropped ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.quarantine.carry_over import renamed_while_waiting, write_carry
from spark_jobs.quarantine.dropped_columns import lost_columns
from spark_jobs.runtime.job import Job
from spark_jobs.windows.local_records import local_records_and_carry
from spark_jobs.windows.log_reader import require_unchanged


def altered_carry(
    job: Job, task: TableTask, control: ControlRecord, before: TableSchema, alterations: Sequence[Alteration]
) -> CarryOver:
    """``before``: the schema of the source's rows. The records in quarantine stay the same."""
    carry, log = control.carry, job.log
    dropped = [one.column for one in alterations if one.kind in (Alter.DROP, Alter.SET_NULL)]
    if not (dropped and carry.waiting):
        return carry
    require_unchanged(log, "the carry-over", carry.files)
    with local_records_and_carry(log, (), "", carry.files) as (_, waiting):
        earlier = {one: log.schema(one) for one in pc.unique(waiting["schema_id"]).to_pylist() if one}
        lost = lost_columns(dropped, before, earlier, renamed_while_waiting(log, task.table, carry))
        if not lost.by_schema:
            return carry
        for schema in lost.schemas:
            log.write_schema(schema)
        rows = lost.without(waiting)
        assert isinstance(rows, pa.Table)
        written = write_carry(log, task.table, f"{job.step.attempt}-{control.fence}-altered", rows)
    return replace(carry, files=written.files)
