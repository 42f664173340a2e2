"""Rows that were deleted while the stream had no deletes: found by comparing keys, deleted in one commit.

The table takes no stream commits meanwhile, and its cursor is right before the window that requires the audit. So all
its rows were read at the source before the keys are, and a row whose key is not in the source was deleted. Later
changes are in the windows after it.

Records that wait for an operator's decision about such a row are dropped: they are older than its delete. A history
ends the versions of these rows, except of those whose changes wait: it must not lose a change, and an audit after the
decision ends them. The commit puts the table back into the stream: a crash before it leaves the
table ``resyncing``, and the next attempt compares again; after it there is nothing to compare.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.holes import hole_for
from airflow_cdc_provider.core.decisions.steps import Batch, Outcome, TableResult
from airflow_cdc_provider.core.log.carry_over import WAITING, CarryOver
from airflow_cdc_provider.core.log.change_log import AUDIT, Hole, batch_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import history_of, row_schema
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP, ORDER
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.row_files import write_frame
from spark_jobs.batches.row_images import ImageColumns, typed
from spark_jobs.batches.staged_rows import BATCH, ROWS
from spark_jobs.copies.copying import open_copy
from spark_jobs.copies.delete_guard import MissingRows, absent_rows, live_rows, require_delete_approval
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.folds.record_columns import own_key
from spark_jobs.histories.compared_rows import end_rows, prefixed, same_key
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.histories.version_times import CommitTimes, versions_until
from spark_jobs.merge import merge_table
from spark_jobs.quarantine.bad_records import quarantined_records, write_listing
from spark_jobs.quarantine.carry_over import read_carry, write_carry
from spark_jobs.replay import CATCHING_UP, replay_table
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_writable
from spark_jobs.windows.log_reader import windows_between
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


def audit_keys(job: Job, work: TableWork, window: int) -> TableResult | None:
    """Delete the rows whose keys are not in the source, mark them as deleted, or end their versions. None where a
    schema change before the window requires a full copy. Raises Blocked where they are more than allowed without
    approval; then nothing is written."""
    task, began = work.task, datetime.now(UTC)
    earlier = replace(job, step=replace(job.step, window=window - 1))
    caught_up = replay_table(earlier, work)
    if caught_up.outcome not in (Outcome.DONE, Outcome.UNCHANGED):
        return caught_up
    control, current = require_writable(job, task, CATCHING_UP)
    assert control.schema is not None
    left = windows_between(job.log, task.source_table, control.window, window - 1)
    if any(one.part.rows for one in left):  # a schema change ended the batch: the next run goes on behind it
        return caught_up if caught_up.outcome is Outcome.DONE else None
    hole = hole_for(job.log.manifest(window), control)
    assert hole is not None
    history, schema = history_of(control.schema), row_schema(control.schema)
    keys = replace(schema, columns=tuple(map(schema.column, schema.key)))
    with (
        open_copy(job, replace(task, schema=keys), window) as copy,
        copy_rows(job, work, copy) as source,
        work.phase("compare"),
    ):
        writer = open_writer(job, work)
        rows = live_rows(current_rows(history, writer.read(task, current.version), schema.key))
        deleted = absent_rows(schema.key, rows, source)
        if task.rule.ignores_deletes:
            deleted = deleted.where("false")
        if history is not History.NONE:
            deleted = without_waiting(job, work, control, deleted, keys)
        attempt = f"{job.step.attempt}-audit"
        folder = batch_folder(task.table, attempt)
        staged = _deletes(deleted, schema, hole) if history is History.NONE else _ends(deleted, schema, hole, began)
        write_frame(staged, job.log.store.url(f"{folder}/{ROWS}"))
        carry = control.carry
        if history is History.NONE and not task.rule.ignores_deletes:
            carry = carry_of_present_rows(job, work, control, source, keys, attempt)
    job.require_planned_source()
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
        carry=carry,
        retired_below=control.retired_below,
        versions_until=versions_until(control, CommitTimes(began, began), "") if control.versions_until else "",
    )
    if missing.rows:
        bounds = key_bounds(job.log.store, f"{folder}/{ROWS}", bounded_column(control.schema))
        batch = replace(batch, bounds=bounds)
    job.log.store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    merged = merge_table(job, work, attempt, CATCHING_UP, resumes=True)
    return replace(merged, detail=merged.detail | {"missing": missing.rows, "of": missing.of})


def carry_of_present_rows(
    job: Job, work: TableWork, control: ControlRecord, source: DataFrame, keys: TableSchema, attempt: str
) -> CarryOver:
    """The carry-over without records that wait for rows that the source has no more. ``source``: its keys."""
    if not control.carry.waiting:
        return control.carry
    waiting, others = _waiting(job, work, control, keys)
    present = waiting.join(source, same_key(keys), "left_semi").select("record.*")
    rows = present.unionByName(others.select("record.*")).localCheckpoint()
    log, bad = job.log, quarantined_records(job.log, control.carry)
    return write_listing(log, work.task.table, attempt, write_carry(log, work.task.table, attempt, rows), bad)


def without_waiting(
    job: Job, work: TableWork, control: ControlRecord, deleted: DataFrame, keys: TableSchema
) -> DataFrame:
    """Without rows whose changes wait."""
    if not control.carry.waiting:
        return deleted
    waiting, _ = _waiting(job, work, control, keys)
    return deleted.join(waiting.drop("record"), same_key(keys), "left_anti")


def _waiting(job: Job, work: TableWork, control: ControlRecord, keys: TableSchema) -> tuple[DataFrame, DataFrame]:
    """Each ``record`` of the carry-over that waits, with its key as ``prefixed``; and the other ones."""
    texts = ImageColumns(keys, {}).keys(own_key())
    carried = read_carry(work.spark, job.log, control.carry).select(
        F.struct("*").alias("record"), "kind", texts.alias("_cdc_texts")
    )
    named = (typed(column, f"_cdc_texts[{n}]").alias(f"_cdc_o{n}") for n, column in enumerate(keys.columns))
    waits = F.col("kind").isin(*WAITING)
    return carried.where(waits).select("record", *named), carried.where(~waits).select("record")


def _ends(deleted: DataFrame, schema: TableSchema, hole: Hole, began: datetime) -> DataFrame:
    """A version ends not before it begins: the clocks are not the same."""
    at = F.greatest(F.lit(began), F.col("_cdc_o_from"))
    return end_rows(schema, prefixed(schema, deleted), at, F.lit(hole.order_key))


def _deletes(deleted: DataFrame, schema: TableSchema, hole: Hole) -> DataFrame:
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
