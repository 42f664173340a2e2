"""The report of a comparison: a Parquet file of what differs, written before anything is repaired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.core.log.change_log import report_folder
from airflow_cdc_provider.core.proof.differences import RowDifference, report_lines
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.runtime.job import Job

COLUMNS = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("window", pa.int64()),
        *((name, pa.string()) for name in ("table", "key", "column", "source_hash", "target_hash")),
    ]
)


def write_report(job: Job, schema: TableSchema, window: int, differences: Sequence[RowDifference]) -> str:
    """The path of the report. After a crash the next attempt writes one of its own."""
    now = datetime.now(UTC)
    lines = [
        (now, window, schema.table, line.key, line.column, line.source_hash, line.target_hash)
        for line in report_lines(differences, schema.names, keyless=not schema.key)
    ]
    path = f"{report_folder(schema.table)}/{now:%Y%m%dT%H%M%S%f}-{job.step.attempt}.parquet"
    columns = [pa.array(values, field.type) for values, field in zip(zip(*lines, strict=True), COLUMNS, strict=True)]
    with job.log.store.open_output(path) as content:
        pq.write_table(pa.table(columns, schema=COLUMNS), content)
    return path
