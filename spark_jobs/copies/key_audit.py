"""Rows that were deleted while the stream had no deletes: found by comparing keys, deleted in one commit.

The table takes no stream commits meanwhile, and its cursor is right before the window that requires the audit. So all
its rows were read at the source before the keys are, and a row whose key is not in the source was deleted. Later
changes are in the windows after it.

A crash before the commit leaves the table ``resyncing``, and the next attempt compares again. After the commit the
cursor is past the window, and the next attempt has nothing to compare.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.holes import hole_for
from airflow_cdc_provider.core.decisions.steps import Batch, Outcome, TableResult
from airflow_cdc_provider.core.log.change_log import AUDIT, Hole, batch_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.row_files import write_frame
from spark_jobs.batches.staged_rows import BATCH, ROWS
from spark_jobs.copies.copying import open_copy
from spark_jobs.copies.delete_guard import MissingRows, absent_rows, live_rows, require_delete_approval
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.merge import merge_table
from spark_jobs.replay import CATCHING_UP, replay_table
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_writable
from spark_jobs.writers.writer import open_writer


def audit_window(log: ChangeLog, control: ControlRecord) -> int | None:
    """The window after the cursor that requires an audit of the table; None where a copy is needed: an operator
    requested one, or the first hole is of another kind."""
    if control.state.command or control.schema is None or not control.schema.key:
        return None
    for number in range(control.window + 1, log.sealed() + 1):
        if hole := hole_for(log.manifest(number), control):
            return number if hole.kind == AUDIT else None
    return None


def audit_keys(job: Job, work: TableWork, window: int) -> TableResult:
    """Delete the rows whose keys are not in the source, or mark them as deleted. Raises Blocked where they are more
    than allowed without approval; then nothing is written."""
    task = work.task
    earlier = replace(job, step=replace(job.step, window=window - 1))
    caught_up = replay_table(earlier, work)
    if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
        return caught_up
    control, current = require_writable(job, task, CATCHING_UP)
    assert control.schema is not None
    hole = hole_for(job.log.manifest(window), control)
    assert hole is not None
    keys = replace(control.schema, columns=tuple(map(control.schema.column, control.schema.key)))
    with (
        open_copy(job, replace(task, schema=keys), window) as copy,
        copy_rows(job, work, copy) as source,
        work.phase("compare"),
    ):
        writer = open_writer(job, work)
        rows = live_rows(writer.read(task, current.version))
        deleted = absent_rows(control.schema.key, rows, source)
        if task.rule.ignores_deletes:
            deleted = deleted.where("false")
        attempt = f"{job.step.attempt}-audit"
        folder = batch_folder(task.table, attempt)
        write_frame(_staged(deleted, control.schema, hole), job.log.store.url(f"{folder}/{ROWS}"))
    missing = MissingRows(_count(job, work, f"{folder}/{ROWS}"), rows.count())
    require_delete_approval(job, work, control, missing, "key audit")
    batch = Batch(
        table=task.table,
        folder=folder,
        fence=control.fence,
        lo_window=control.window,
        window=window,
        schema=control.schema,
        rows=missing.rows,
        counts={"delete": missing.rows},
        partial=True,
        carry=control.carry,
        retired_below=control.retired_below,
    )
    if missing.rows:
        bounds = key_bounds(job.log.store, f"{folder}/{ROWS}", bounded_column(control.schema))
        batch = replace(batch, bounds=bounds)
    job.log.store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    merged = merge_table(job, work, attempt, CATCHING_UP)
    return replace(merged, detail=merged.detail | {"missing": missing.rows, "of": missing.of})


def _staged(deleted: DataFrame, schema: TableSchema, hole: Hole) -> DataFrame:
    """Deletes with key columns only, at the order key of the hole."""
    columns = [
        F.col(quoted(column.name))
        if column.name in schema.key
        else F.lit(None).cast(column_type(column.type)).alias(column.name)
        for column in schema.columns
    ]
    known = F.array(*(F.lit(name) for name in schema.key)).alias(KNOWN)
    return deleted.select(*columns, F.lit(hole.order_key).alias(ORDER), F.lit(GONE).alias(OP), known)


def _count(job: Job, work: TableWork, folder: str) -> int:
    return work.spark.read.parquet(job.log.store.url(folder)).count()
