"""Reads and writes the carry-over of a table. Its files are named by the attempt that staged them: until that batch is
committed, nothing refers to them.
"""

from __future__ import annotations

import hashlib
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.decisions.operator_decisions import decided_renames
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, carry_folder
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.log_reader import RECORD_COLUMNS, require_unchanged
from spark_jobs.windows.parquet_files import open_parquet, part_files

CARRY_COLUMNS = ("kind", "since", "reason", "until")
"""The columns of a carried record besides those of a change record. ``until`` is the number of a window."""

CARRIED_ROW_COLUMNS = ", ".join([RECORD_COLUMNS, *(f"{name} STRING" for name in CARRY_COLUMNS)])
PIECE_BYTES = 1 << 20


def read_carry(spark: SparkSession, log: ChangeLog, carry: CarryOver) -> DataFrame:
    """Raises StagingInvalid (STG005) where a file is missing or differs from the committed one."""
    require_unchanged(log, "the carry-over", carry.files)
    if not carry.files:
        return spark.createDataFrame([], CARRIED_ROW_COLUMNS)
    return spark.read.schema(CARRIED_ROW_COLUMNS).parquet(*(log.store.url(file.path) for file in carry.files))


def renamed_while_waiting(log: ChangeLog, table: str, carry: CarryOver) -> dict[str, str]:
    """Columns that were renamed while records waited, by an operator's decision."""
    windows = [] if carry.dirty else [record.window for record in log.quarantined_records(carry)]
    return decided_renames(log.decisions(), table, min(windows, default=1) - 1)


def write_carry(log: ChangeLog, table: str, attempt: str, rows: DataFrame | pa.Table) -> CarryOver:
    """``rows`` have the columns of ``CARRIED_ROW_COLUMNS``."""
    folder = carry_folder(table, attempt)
    if isinstance(rows, pa.Table):
        if not len(rows):
            return NOTHING
        with log.store.open_output(f"{folder}/part-00000.parquet") as content:
            pq.write_table(rows, content, store_schema=False)
    else:
        rows.coalesce(1).write.parquet(log.store.url(folder))
    failpoint("carry.after")
    return _written_carry(log, folder)


def _written_carry(log: ChangeLog, folder: str) -> CarryOver:
    counts: Counter[str] = Counter()
    files = []
    for path in part_files(log.store, folder):
        with open_parquet(log.store, path) as parquet:
            rows = parquet.metadata.num_rows
            for piece in parquet.iter_batches(columns=["kind"]):
                counts.update(
                    {count["values"]: count["counts"] for count in pc.value_counts(piece["kind"]).to_pylist()}
                )
        if rows:
            files.append(_data_file(log, path, rows))
    return CarryOver(tuple(files), dict(counts))


def _data_file(log: ChangeLog, path: str, rows: int) -> DataFile:
    digest, size = hashlib.sha256(), 0
    with log.store.open_input(path) as content:
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
    return DataFile(path, rows, size, digest.hexdigest())
