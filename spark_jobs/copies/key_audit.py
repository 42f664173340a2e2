"""Rows that were deleted where the stream does not tell deletes: found by their keys, taken out in one commit.

The table takes no stream commits meanwhile and stands right before the window that asked for the audit. So whatever it
holds was read at the source before the keys are, and a key that is not among them is gone. What is read later comes on
top, out of the windows behind.

Dies before the commit: the table is still ``resyncing``, the next attempt compares again. Dies after it: the cursor has
passed the window, and the next attempt finds nothing to compare.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.steps import Batch, Outcome, TableResult
from airflow_cdc_provider.core.decisions.table_decisions import hole_of
from airflow_cdc_provider.core.log.change_log import AUDIT, Hole, batch_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.builder import BATCH
from spark_jobs.batches.key_bounds import bounds_of
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.copies.copying import opened_copy
from spark_jobs.copies.delete_guard import MissingRows, absent, live, require_yes
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.merge import merge_table
from spark_jobs.replay import CATCHING_UP, replay_table
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_current
from spark_jobs.writers.writer import open_writer


def audit_window(log: ChangeLog, control: ControlRecord) -> int | None:
    """The window behind the cursor that asks for an audit of the table; None where a copy is needed: somebody asked for
    one, or the first hole is another."""
    if control.state.command or control.schema is None or not control.schema.key:
        return None
    for number in range(control.window + 1, log.sealed() + 1):
        if hole := hole_of(log.manifest(number), control.table, control.floor):
            return number if hole.kind == AUDIT else None
    return None


def audit_keys(job: Job, work: TableWork, window: int) -> TableResult:
    """Delete, or flag, the rows whose keys the source does not hold. Raises Blocked where they are more than allowed
    and nobody has said yes; then nothing is written."""
    task = work.task
    before = replace(job, step=replace(job.step, window=window - 1))
    caught_up = replay_table(before, work)
    if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
        return caught_up
    control, held = require_current(job, task, CATCHING_UP)
    assert control.schema is not None
    hole = hole_of(job.log.manifest(window), task.table, control.floor)
    assert hole is not None
    keys = replace(control.schema, columns=tuple(map(control.schema.column, control.schema.key)))
    with (
        opened_copy(job, replace(task, schema=keys), window) as copy,
        copy_rows(job, work, copy) as source,
        work.phase("compare"),
    ):
        rows = live(open_writer(job.step.definition.target.type, work.session, job.tables).read(task, held.version))
        gone = absent(control.schema.key, rows, source)
        if task.rule.on_delete is OnDelete.IGNORE:
            gone = gone.where("false")
        attempt = f"{job.step.attempt}-audit"
        folder = batch_folder(task.table, attempt)
        _staged(gone, control.schema, hole).write.mode("overwrite").parquet(job.log.store.url(f"{folder}/{ROWS}"))
    missing = MissingRows(_count(job, work, f"{folder}/{ROWS}"), rows.count())
    require_yes(job, work, control, missing, "key audit")
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
        leading = control.schema.column(control.schema.key[0])
        batch = replace(batch, bounds=bounds_of(job.log.store, f"{folder}/{ROWS}", leading))
    job.log.store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    merged = merge_table(job, attempt, work, CATCHING_UP)
    return replace(merged, detail=merged.detail | {"missing": missing.rows, "of": missing.of})


def _staged(gone: DataFrame, schema: TableSchema, hole: Hole) -> DataFrame:
    """Deletes that know no more than their keys, as old as the question."""
    columns = [
        F.col(quoted(column.name))
        if column.name in schema.key
        else F.lit(None).cast(column_type(column.type)).alias(column.name)
        for column in schema.columns
    ]
    known = F.array(*(F.lit(name) for name in schema.key)).alias(KNOWN)
    return gone.select(*columns, F.lit(hole.order_key).alias(ORDER), F.lit(GONE).alias(OP), known)


def _count(job: Job, work: TableWork, folder: str) -> int:
    return work.spark.read.parquet(job.log.store.url(folder)).count()
