"""The commit times of a batch, from the footers of its files."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.histories.version_times import CommitTimes
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.parquet_files import open_parquet
from spark_jobs.windows.record_files import SCHEMA


def commit_times(log: ChangeLog, windows: Iterable[WindowSlice]) -> CommitTimes:
    column, times = SCHEMA.get_field_index("commit_ts"), CommitTimes()
    for file in (file for window in windows for file in window.part.files):
        with open_parquet(log.store, file.path) as parquet:
            for number in range(parquet.metadata.num_row_groups):
                times = times.with_piece(parquet.metadata.row_group(number).column(column).statistics)
    return times
