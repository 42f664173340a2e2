"""The commit times of a batch, from the footers of its files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.histories.version_times import CommitTimes
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.parquet_files import column_statistics
from spark_jobs.windows.record_files import SCHEMA


def commit_times(log: ChangeLog, windows: Iterable[WindowSlice]) -> CommitTimes:
    paths = (file.path for window in windows for file in window.part.files)
    pieces = column_statistics(log.store, paths, SCHEMA.get_field_index("commit_ts"))
    return reduce(CommitTimes.with_piece, pieces, CommitTimes())
