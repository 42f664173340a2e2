"""Which tables are in the published cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.control import publish_cut
from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_log import Manifest, TableSlice, manifest_path
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import select_cut_tables
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.whole_windows import WholeWindows
from spark_jobs.quarantine.refetch import not_replayed
from spark_jobs.windows.driver_reads import CarriedRecord


def row(table: str, passed: int, state: TableState = TableState.REPLICATING) -> TableRow:
    return TableRow(table, table, state, passed=passed)


def names(*rows: TableRow) -> list[str]:
    return [one.table for one in select_cut_tables(rows, 5)]


@pytest.mark.parametrize(
    ("cuts", "passed", "replayed"),
    [
        (("size", "size", "size"), 3, False),
        (("", "size", "size"), 3, False),
        (("size", "size", ""), 2, False),
        (("size", "", "size"), 3, True),
        (("size", "size", ""), 3, True),
    ],
)
def test_a_copy_is_replayed_by_a_window_that_ends_where_its_source_ended(
    tmp_path: Path, cuts: Sequence[str], passed: int, replayed: bool
) -> None:
    """Whatever its number: windows end earlier where they are full, at holes, and at schema changes."""
    log = ChangeLog(LocalStore(str(tmp_path)))
    for number, cut in enumerate(cuts, start=1):
        tables = {"b": TableSlice("", cut=cut), "other": TableSlice("")}
        log.seal(Manifest("log", number, 1, {}, {}, "", "x", "2026-01-01", tables))
    record = ControlRecord("r", "b", "log", "me", "a", 1, 1, "f", State(TableState.REPLICATING, "2026-01-01"), high=2)
    one = replace(row("b", passed), control=record)
    windows = WholeWindows(log)
    assert windows.is_replayed("b", 2, passed) == replayed
    assert publish_cut._is_before_cut_windows(windows, one, passed) != replayed
    log.store.delete(manifest_path(1))
    assert WholeWindows(log).is_replayed("b", 1, passed), "a window that was removed counts"


class CountingLog(ChangeLog):
    def __init__(self, folder: Path) -> None:
        super().__init__(LocalStore(str(folder)))
        self.read = list[int]()

    def manifest(self, window: int) -> Manifest:
        self.read.append(window)
        return super().manifest(window)


def cut_windows(folder: Path, number: int, names: Iterable[str]) -> CountingLog:
    log, tables = CountingLog(folder), {name: TableSlice("", cut="size") for name in names}
    for window in range(1, number + 1):
        log.seal(Manifest("log", window, 1, {}, {}, "", "x", "2026-01-01", tables))
    return log


def test_each_manifest_is_read_once_for_all_tables_and_rows(tmp_path: Path) -> None:
    tables = [f"t{number}" for number in range(50)]
    log = cut_windows(tmp_path, 20, tables)
    windows = WholeWindows(log)
    assert not any(windows.is_replayed(table, 1, 20) for table in tables)
    assert sorted(log.read) == list(range(1, 21))


def test_rows_that_were_fetched_at_one_time_have_one_answer(tmp_path: Path) -> None:
    log, asked = cut_windows(tmp_path, 3, "a"), list[int]()

    class Asked(WholeWindows):
        def is_replayed(self, table: str, first: int, last: int) -> bool:
            asked.append(first)
            return super().is_replayed(table, first, last)

    record: Any = None
    rows = [CarriedRecord(record, Carried.FETCHED, until=until) for until in ("2", "3", None) for _ in range(100)]
    assert not_replayed(rows, Asked(log), "a", 3) == rows[:200]
    assert sorted(asked) == [0, 2, 3]


def test_a_window_that_another_run_removes_meanwhile_counts_as_one(tmp_path: Path) -> None:
    log = cut_windows(tmp_path, 4, "a")
    windows = WholeWindows(log)
    assert not windows.is_replayed("a", 3, 4)
    log.store.delete(manifest_path(1))
    log.store.delete(manifest_path(2))
    assert windows.is_replayed("a", 2, 4)


def test_a_window_of_an_earlier_version_counts_as_one_that_ends_where_its_source_ended() -> None:
    part = TableSlice("0" * 64)
    plain = {name: value for name, value in to_plain(part).items() if name != "cut"}
    assert from_plain(TableSlice, plain) == part and not part.cut


def test_a_cut_waits_for_every_replicating_table() -> None:
    assert names(row("a", 5), row("b", 5)) == ["a", "b"]
    assert names(row("a", 5), row("b", 4)) == []
    assert names(row("a", 5), row("b", 5, TableState.FAILING)) == []


def test_tables_that_may_lag_for_long_are_left_out() -> None:
    others = [row(state, 1, state) for state in TableState if state not in (TableState.REPLICATING, TableState.FAILING)]
    assert names(row("a", 5), *others) == ["a"]
    assert names(*others) == []


def test_a_table_whose_copy_was_not_exact_is_left_out_until_it_has_caught_up() -> None:
    record = ControlRecord("r", "b", "log", "me", "a", 1, 3, "f", State(TableState.REPLICATING, "2026-01-01"), high=5)
    behind, past = replace(row("b", 4), control=record), replace(row("b", 5), control=record)
    assert names(row("a", 5), behind) == ["a"]
    assert names(row("a", 5), past) == ["a", "b"]
