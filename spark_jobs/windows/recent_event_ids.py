"""The event ids of changes in recent windows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.parquet_files import open_parquet
from spark_jobs.windows.recent_windows import RecentWindow

READERS = 16
"""The files of windows are small and many, and every request to an object store takes time."""


def recent_event_ids(log: ChangeLog, windows: Sequence[RecentWindow]) -> frozenset[str]:
    """The ids of the records in these windows, of those that are recent. Reads only this column."""
    files = [file for window in windows if window.is_recent for file in window.files]
    with ThreadPoolExecutor(READERS, thread_name_prefix="event-ids") as pool:
        id_lists = pool.map(lambda file: _ids(log, file), files)
        return frozenset(event_id for ids in id_lists for event_id in ids)


def _ids(log: ChangeLog, file: DataFile) -> list[str]:
    with open_parquet(log.store, file.path) as parquet:
        ids: list[str] = parquet.read(columns=["event_id"])["event_id"].to_pylist()
    return ids
