"""Rows that a process reads itself: all tables together stay within one budget of memory."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.runtime import memory_budget

TABLES = 8
COLUMNS = pa.schema([("n", pa.int64())])


def _store(folder: Path, rows: int) -> tuple[Store, int]:
    """One file per table, and the size of each."""
    for number in range(TABLES):
        pq.write_table(pa.table({"n": pa.array(range(rows))}), folder / f"{number}.parquet", compression="none")
    group = pq.read_metadata(folder / "0.parquet").row_group(0)
    return open_store(folder.as_uri(), ConnectionInfo()), group.column(0).total_uncompressed_size


def test_all_tables_together_stay_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(2 * size + size // 2))
    lock, used, peak = Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal used, peak
        with memory_budget.read_small_files(store, ([f"{number}.parquet"], COLUMNS)) as (rows,):
            with lock:
                used += size
                peak = max(peak, used)
            time.sleep(0.02)
            with lock:
                used -= size
            return len(rows)

    with ThreadPoolExecutor(TABLES) as threads:
        assert list(threads.map(work, range(TABLES))) == [1000] * TABLES
    assert peak <= 2 * size


def test_rows_that_never_fit_are_refused_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(2 * size - 1))
    with memory_budget.read_small_files(store, (["0.parquet"], COLUMNS)) as (rows,):
        assert len(rows) == 1000
    with (
        pytest.raises(NeedsSpark, match="MiB of rows"),
        memory_budget.read_small_files(store, (["1.parquet", "2.parquet"], COLUMNS)),
    ):
        pass


def test_a_failing_table_releases_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(size))
    with pytest.raises(ZeroDivisionError), memory_budget.read_small_files(store, (["0.parquet"], COLUMNS)):
        raise ZeroDivisionError
    with memory_budget.read_small_files(store, (["1.parquet"], COLUMNS)) as (rows,):
        assert rows is not None
