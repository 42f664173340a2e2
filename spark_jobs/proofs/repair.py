"""The repair of what a comparison found different: the rows of these keys, and no others, are read again from the
source and merged.

The rows have the position of the comparison as their order, and the commit is conditional on the state of the table
that was compared: a newer change is not overwritten, and a repeated repair changes nothing. A key that only the target
has is deleted. The cursor stays, and the fence is raised.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.decisions.steps import Batch, TableResult
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.quarantine import build_accounting
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, LIVE, OP, ORDER, PUT
from airflow_cdc_provider.core.table.own_rows import bounded_column
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.compare import key_sql
from spark_jobs.batches.key_bounds import key_bounds
from spark_jobs.batches.row_files import as_in_file
from spark_jobs.batches.staged_rows import BATCH, ROWS, staged_columns
from spark_jobs.merge import merge_table
from spark_jobs.proofs.compare import Comparison
from spark_jobs.proofs.source_side import SourceSide
from spark_jobs.proofs.target_side import TargetSide
from spark_jobs.runtime.job import Job, TableWork

KEY = "_cdc_k"


@dataclass(frozen=True)
class FoundRows:
    """``present``: the rows of the source with these keys, and the text ``k`` of each; ``gone``: the key columns of
    rows that only the target has."""

    present: pa.Table
    gone: pa.Table


def find_rows(source: SourceSide, target: TargetSide, comparison: Comparison) -> FoundRows:
    keys = comparison.keys
    present = source.find(comparison.intervals, keys).select("*", F.expr(key_sql(target.schema)).alias(KEY)).toArrow()
    absent = sorted(set(keys) - set(present[KEY].to_pylist()))
    return FoundRows(present, target.key_columns(comparison.intervals, absent).toArrow())


def merge_rows(job: Job, work: TableWork, copy: Copy, control: ControlRecord, found: FoundRows) -> TableResult:
    """Merge the rows into the state ``control`` of the table. Raises Fenced where it has changed since,
    SourceUnreachable (SRC010) where the rows may be those of another source."""
    job.require_planned_source()
    schema = control.schema or copy.schema
    partial = not set(schema.names) <= set(copy.schema.names)
    rows = staged_rows(schema, copy, found, partial)
    folder, store = batch_folder(work.task.table, job.step.attempt), job.log.store
    store.delete(folder)  # of the windows before
    with store.open_output(f"{folder}/{ROWS}/part-00000.parquet") as content:
        pq.write_table(as_in_file(rows), content, store_schema=False)
    batch = Batch(
        table=work.task.table,
        folder=folder,
        fence=control.fence,
        lo_window=control.window,
        window=control.window,
        schema=schema,
        rows=len(rows),
        counts={"upsert": len(found.present), "delete": len(found.gone)},
        partial=partial,
        repair=True,
        bounds=key_bounds(store, f"{folder}/{ROWS}", bounded_column(schema)),
        accounting=build_accounting(len(rows), 0, len(rows), 0, 0, 0, 0),
    )
    store.write(f"{folder}/{BATCH}", json.dumps(to_plain(batch)).encode())
    failpoint("repair.before_merge")
    result = merge_table(job, work, job.step.attempt)
    failpoint("repair.after_merge")
    return result


def staged_rows(schema: TableSchema, copy: Copy, found: FoundRows, partial: bool) -> pa.Table:
    """``partial``: the source does not have some columns of the target any more; they keep their values."""
    columns = staged_columns(schema, partial)
    known = [name for name in schema.names if name in copy.schema.names] if partial else None
    sides = [(found.present, PUT if partial else LIVE, known), (found.gone, GONE, None)]
    return pa.concat_tables(_staged(rows, columns, copy.floor, op, names) for rows, op, names in sides)


def _staged(rows: pa.Table, columns: pa.Schema, order: str, op: str, known: Sequence[str] | None) -> pa.Table:
    technical = {ORDER: order, OP: op, KNOWN: known}
    arrays = [
        rows[column.name].cast(column.type)
        if column.name in rows.column_names
        else pa.array([technical.get(column.name)] * len(rows), column.type)
        for column in columns
    ]
    return pa.table(arrays, schema=columns)
