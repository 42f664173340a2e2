"""Rows that a process works on by itself: all tables together take no more memory than one may."""

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
from spark_jobs.engines.needs_spark import NeedsSpark
from spark_jobs.runtime import memory_budget

TABLES = 8


def _store(folder: Path, rows: int) -> tuple[Store, int]:
    """One file per table, and what each takes."""
    for number in range(TABLES):
        pq.write_table(pa.table({"n": pa.array(range(rows))}), folder / f"{number}.parquet", compression="none")
    group = pq.read_metadata(folder / "0.parquet").row_group(0)
    return open_store(folder.as_uri(), ConnectionInfo()), group.column(0).total_uncompressed_size


def test_all_tables_at_once_hold_no_more_than_one_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(2 * size + size // 2))
    lock, held, peak = Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal held, peak
        with memory_budget.read_small_files(store, ([f"{number}.parquet"], None)) as (rows,):
            with lock:
                held += size
                peak = max(peak, held)
            time.sleep(0.02)
            with lock:
                held -= size
            return len(rows)

    with ThreadPoolExecutor(TABLES) as threads:
        assert list(threads.map(work, range(TABLES))) == [1000] * TABLES
    assert peak <= 2 * size


def test_what_never_fits_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(2 * size - 1))
    with memory_budget.read_small_files(store, (["0.parquet"], None)) as (rows,):
        assert len(rows) == 1000
    with (
        pytest.raises(NeedsSpark, match="MiB of rows"),
        memory_budget.read_small_files(store, (["1.parquet", "2.parquet"], None)),
    ):
        pass


def test_a_table_that_fails_gives_back_what_it_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, size = _store(tmp_path, 1000)
    monkeypatch.setattr(memory_budget, "BUDGET", memory_budget.MemoryBudget(size))
    with pytest.raises(ZeroDivisionError), memory_budget.read_small_files(store, (["0.parquet"], None)):
        raise ZeroDivisionError
    with memory_budget.read_small_files(store, (["1.parquet"], None)) as (rows,):
        assert rows is not None
