"""Which event ids a window compares with, to drop events that are delivered again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.core.log.change_log import Manifest, TableSlice, manifest_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.windows.recent_event_ids import recent_event_ids
from spark_jobs.windows.recent_windows import recent_windows
from spark_jobs.windows.record_files import RecordFile

NOW = datetime(2026, 3, 4, tzinfo=UTC)
KEPT = timedelta(hours=72)


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    """Five windows of two tables, sealed one day apart; the last one is sealed now."""
    log = ChangeLog(LocalStore(str(tmp_path)))
    for window in range(1, 6):
        tables = {}
        for table in ("a", "b"):
            file = RecordFile(log.store, f"windows/{window:010d}/x/{table}.parquet")
            file.write([ChangeRecord(table, "update", "0", "s", event_id=f"{table}{window}")])
            tables[table] = TableSlice("", ("s",), (file.close().file,), {"update": 1})
        sealed_at = (NOW - timedelta(days=5 - window)).isoformat()
        log.seal(Manifest("log", window, 1, {}, {}, "", "x", sealed_at, tables))
    return log


def ids(log: ChangeLog, window: int, now: datetime) -> frozenset[str]:
    return recent_event_ids(log, recent_windows(log, window, now - KEPT))


def test_ids_are_kept_as_long_as_the_source_may_deliver_their_events_again(log: ChangeLog) -> None:
    assert ids(log, 6, NOW) == {"a2", "b2", "a3", "b3", "a4", "b4", "a5", "b5"}
    assert ids(log, 6, NOW + timedelta(seconds=1)) == {"a3", "b3", "a4", "b4", "a5", "b5"}


def test_a_window_that_is_landed_again_does_not_count_its_own_ids(log: ChangeLog) -> None:
    assert ids(log, 3, NOW) == {"a2", "b2"}


def test_cleaned_windows_are_not_read(log: ChangeLog) -> None:
    for window in (1, 2, 3):
        log.store.delete(manifest_path(window))
    assert ids(log, 6, NOW) == {"a4", "b4", "a5", "b5"}


def test_before_the_first_window_there_are_no_ids(tmp_path: Path) -> None:
    assert ids(ChangeLog(LocalStore(str(tmp_path))), 1, NOW) == frozenset()
