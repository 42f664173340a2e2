"""A slice of a table, read from the source again and merged: rows of the slice are inserted or replaced unless the copy
has a newer change of them. Rows are not deleted.

The rows are a batch with the anchor of the slice as their order, so changes up to the anchor, which a later window may
still contain, do not apply to them, and later changes do. The cursor stays. A crash before the merge leaves files that
nothing names; after it, the slice may be copied again, with the same result.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import functions as F

from airflow_cdc_provider.core.columns.copied import copied_name
from airflow_cdc_provider.core.decisions.steps import STAGED, Batch, Outcome, TableResult
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.slices import Slice
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copy_extent import CopyExtent
from airflow_cdc_provider.core.table.merge_plan import KNOWN, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.row_files import write_frame
from spark_jobs.batches.staged_rows import BATCH, ROWS
from spark_jobs.copies.copying import open_copy
from spark_jobs.copies.read_end import end_of_read
from spark_jobs.copies.split_frames import copy_rows
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.table_guard import require_expected_fence, require_writable
from spark_jobs.windows.parquet_files import count_rows


def stage_slice(job: Job, work: TableWork, one: Slice) -> TableResult:
    """Stage the slice as a batch. Raises Fenced where the target is not in the expected state, SourceUnavailable where
    the copy does not have the columns of the source yet, and the errors of reading a split."""
    task, store = work.task, job.log.store
    control, _ = require_writable(job, task, frozenset())
    require_expected_fence(task, control)
    conditions = one.conditions(task.schema.column(copied_name(task.rule, one.column)).type.kind)
    extent = CopyExtent(where=(*task.rule.snapshot.where, *conditions))
    folder = batch_folder(task.table, job.step.attempt)
    with open_copy(job, task, job.step.window, extent) as copy, copy_rows(job, work, copy) as rows:
        schema = _schema_of_copy(control, copy.schema)
        staged = rows.select(
            *(F.col(quoted(name)) for name in schema.names),
            F.lit(copy.floor).alias(ORDER),
            F.lit(LIVE).alias(OP),
            F.lit(None).cast("array<string>").alias(KNOWN),
        )
        with work.phase("read"):
            write_frame(staged, store.url(f"{folder}/{ROWS}"))
        read_end = end_of_read(job, work)
    job.require_planned_source()
    number = count_rows(store, f"{folder}/{ROWS}")
    batch = Batch(
        table=task.table,
        folder=folder,
        fence=control.fence,
        lo_window=control.window,
        window=control.window,
        schema=schema,
        rows=number,
        counts={"slice": number},
        repair=True,
        carry=control.carry,
        retired_below=control.retired_below,
        high=read_end.high,
    )
    if number:
        batch = replace(batch, bounds=key_bounds(store, f"{folder}/{ROWS}", bounded_column(schema)))
    store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    failpoint("stage.after_batch")
    log_line(f"{task.table}: {number:,} rows with {one}")
    return work.result(
        Outcome.DONE,
        rows=number,
        counts=batch.counts,
        fence=batch.fence,
        window=batch.window,
        detail={STAGED: number},
    )


def _schema_of_copy(control: ControlRecord, source: TableSchema) -> TableSchema:
    """Raises SourceUnavailable (CPY022) if the columns differ."""
    assert control.schema is not None
    copied = {column.name: column.type for column in control.schema.columns}
    if copied != {column.name: column.type for column in source.columns}:
        names = sorted(copied.keys() ^ set(source.names)) or "another type"
        raise SourceUnavailable.of(
            "CPY022",
            f"{control.table} has other columns at the source than in its copy",
            where=control.table,
            found=", ".join(names) if isinstance(names, list) else names,
            allowed="equal columns",
            do="let a run apply the change of the columns; then start the backfill again",
            data="nothing was written",
        )
    return control.schema
