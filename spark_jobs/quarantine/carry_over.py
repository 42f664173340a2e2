"""The carry-over of a table, read and written. A file is named by the attempt that staged it: until that batch is
committed nobody knows of it."""

from __future__ import annotations

import hashlib
from collections import Counter

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, carry_folder
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.log_reader import RECORD, require_unchanged
from spark_jobs.windows.parquet_files import opened, parts

BESIDE = ("kind", "since", "reason", "until")
"""What a carried record has beside its own columns. ``until`` is a window's number."""

CARRIED = ", ".join([RECORD, *(f"{name} STRING" for name in BESIDE)])
PIECE_BYTES = 1 << 20


def read_carry(spark: SparkSession, log: ChangeLog, carry: CarryOver) -> DataFrame:
    """Raises StagingInvalid (STG005) where a file is missing or not the one that was committed."""
    require_unchanged(log, "the carry-over", carry.files)
    if not carry.files:
        return spark.createDataFrame([], CARRIED)
    return spark.read.schema(CARRIED).parquet(*(log.store.url(file.path) for file in carry.files))


def write_carry(log: ChangeLog, table: str, attempt: str, frame: DataFrame) -> CarryOver:
    """``frame`` has the columns of ``CARRIED``."""
    folder = carry_folder(table, attempt)
    frame.coalesce(1).write.parquet(log.store.url(folder))
    failpoint("carry.after")
    counts: Counter[str] = Counter()
    files = []
    for path in parts(log.store, folder):
        with opened(log.store, path) as parquet:
            rows = parquet.metadata.num_rows
            for piece in parquet.iter_batches(columns=["kind"]):
                counts.update({one["values"]: one["counts"] for one in pc.value_counts(piece["kind"]).to_pylist()})
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
