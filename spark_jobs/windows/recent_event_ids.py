"""The event ids of changes in recent windows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.parquet_files import open_parquet

READERS = 16
"""The files of windows are small and many, and every request to an object store takes time."""


def recent_event_ids(log: ChangeLog, window: int, within: timedelta, now: datetime) -> frozenset[str]:
    """The ids of the records in windows before ``window`` that were sealed within this time. Reads only this column."""
    with ThreadPoolExecutor(READERS, thread_name_prefix="event-ids") as pool:
        id_lists = pool.map(lambda file: _ids(log, file), _files(log, window, now - within))
        return frozenset(event_id for ids in id_lists for event_id in ids)


def _files(log: ChangeLog, window: int, since: datetime) -> Iterator[DataFile]:
    """Windows are sealed in order: the first one that is too old ends the search."""
    for number in range(window - 1, log.oldest() - 1, -1):
        manifest = log.manifest(number) if number else None
        if manifest is None or datetime.fromisoformat(manifest.sealed_at) < since:
            return
        for part in manifest.tables.values():
            yield from part.files


def _ids(log: ChangeLog, file: DataFile) -> list[str]:
    with open_parquet(log.store, file.path) as parquet:
        ids: list[str] = parquet.read(columns=["event_id"])["event_id"].to_pylist()
    return ids
