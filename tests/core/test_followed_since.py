"""A change from before its table was followed may be a repetition that no window can recognise: its row is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.duplicates import without_unrecognised
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import Manifest, TableSlice, manifest_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.windows.followed_since import followed_since
from spark_jobs.windows.recent_event_ids import recent_event_ids
from spark_jobs.windows.recent_windows import recent_windows

NOW = datetime(2026, 3, 4, tzinfo=UTC)
KEPT = timedelta(hours=72)


def at(days: float) -> datetime:
    return NOW + timedelta(days=days)


class Repeats:
    def time_of(self, position: Position) -> datetime:
        return at(float(position["days"]))

    def fetch(self, table: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        raise NotImplementedError


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(LocalStore(str(tmp_path)))


def sealed(log: ChangeLog, windows: Sequence[tuple[float, int, str]]) -> None:
    """Windows, each with the day of its begin and its seal, its epoch, and its tables."""
    for number, (day, epoch, names) in enumerate(windows, start=1):
        tables = {name: TableSlice("") for name in names}
        lo = {"days": f"{day}"}
        log.seal(Manifest("log", number, epoch, lo, {}, "", "x", at(day).isoformat(), tables))


def since(log: ChangeLog, window: int, epoch: int = 1) -> dict[str, datetime]:
    tasks = [SimpleNamespace(table=name) for name in "ab"]
    step: Any = SimpleNamespace(window=window, epoch=epoch, lo={"days": "0"}, tables=tasks)
    return followed_since(recent_windows(log, window, NOW - KEPT), step, Repeats())


def test_a_table_is_followed_since_the_first_of_the_windows_that_all_contain_it(log: ChangeLog) -> None:
    sealed(log, [(-2.5, 1, "a"), (-2, 1, "b"), (-1.5, 1, "ab"), (-1, 1, "ab"), (-0.5, 1, "a")])
    assert since(log, 6) == {"a": at(-1.5), "b": at(0)}
    assert since(log, 5) == {"a": at(-1.5), "b": at(-2)}
    assert since(log, 1) == {"a": at(0), "b": at(0)}


def test_a_table_that_was_followed_before_any_possible_repetition_is_left_out(log: ChangeLog) -> None:
    sealed(log, [(-4, 1, "a"), (-3.5, 1, "a"), (-2, 1, "ab")])
    assert since(log, 4) == {"b": at(-2)}


def test_an_epoch_begins_without_memory_and_cleaned_windows_are_none(log: ChangeLog) -> None:
    sealed(log, [(-2, 1, "ab"), (-1.5, 1, "ab"), (-1, 2, "ab")])
    assert since(log, 4, epoch=2) == {"a": at(-1), "b": at(-1)}
    log.store.delete(manifest_path(1))
    assert since(log, 3) == {"a": at(-1.5), "b": at(-1.5)}


def test_ids_and_times_come_of_one_walk_over_the_manifests(log: ChangeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(log, [(-4, 1, "a"), (-3.5, 1, "a"), (-2, 1, "ab"), (-1, 1, "ab")])
    read, manifest = list[int](), log.manifest
    monkeypatch.setattr(log, "manifest", lambda window: read.append(window) or manifest(window))
    windows = recent_windows(log, 5, NOW - KEPT)
    step: Any = SimpleNamespace(epoch=1, lo={"days": "0"}, tables=[SimpleNamespace(table="a")])
    assert recent_event_ids(log, windows) == frozenset() and followed_since(windows, step, Repeats()) == {}
    assert read == [4, 3, 2]


def test_changes_of_that_time_become_gaps_and_all_others_stay() -> None:
    def change(table: str, op: str, day: float, **more: Any) -> ChangeRecord:
        return ChangeRecord(table, op, "1", "s", commit_ts=at(day), after_complete=True, **more)

    new = [change("a", "update", -0.5, key="[1]"), change("b", "update", -2, key="[1]"), change("a", "overflow", -2)]
    old = [change("a", "upsert", -1, key="[1]", after="{}"), change("a", "delete", -2, key_before="[2]")]
    found = list(without_unrecognised([*new, *old], {"a": at(-1)}))
    assert found[:3] == new
    assert [(one.op, one.key, one.after, one.after_complete) for one in found[3:] if isinstance(one, ChangeRecord)] == [
        ("gap", "[1]", '{"op":"upsert"}', False),
        ("gap", "[2]", '{"op":"delete"}', False),
    ]
