"""The changes that were landed not long ago, by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.parquet_files import opened

READERS = 16
"""Files of windows are small and many, and an object store answers slowly."""


def event_ids(log: ChangeLog, window: int, within: timedelta, now: datetime) -> frozenset[str]:
    """Of the records in windows before ``window`` that were sealed within this time. Only this column is read."""
    with ThreadPoolExecutor(READERS, thread_name_prefix="remembered") as pool:
        found = pool.map(lambda file: _ids(log, file), _files(log, window, now - within))
        return frozenset(one for ids in found for one in ids)


def _files(log: ChangeLog, window: int, since: datetime) -> Iterator[DataFile]:
    """Windows are sealed one after the other: the first that is too old ends the search."""
    for number in range(window - 1, log.oldest() - 1, -1):
        manifest = log.manifest(number) if number else None
        if manifest is None or datetime.fromisoformat(manifest.sealed_at) < since:
            return
        for part in manifest.tables.values():
            yield from part.files


def _ids(log: ChangeLog, file: DataFile) -> list[str]:
    with opened(log.store, file.path) as parquet:
        ids: list[str] = parquet.read(columns=["event_id"])["event_id"].to_pylist()
    return ids
