"""To which snapshot of an Iceberg table a rewind returns."""

from __future__ import annotations

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.iceberg.history import SnapshotEntry, first_at_or_before


def record(window: int, nonce: str) -> ControlRecord:
    state = State(TableState.REPLICATING, "2026-01-01")
    return ControlRecord("shop", "s.t", "log", "owner", "a", 1, window, "", state, nonce=nonce)


def returned(window: int, *records: ControlRecord | None) -> int:
    """``records``: of the snapshots 1, 2, …, the oldest first."""
    entries = {number: SnapshotEntry(number - 1 or None, one) for number, one in enumerate(records, 1)}
    found = first_at_or_before(entries, len(records), window)
    assert found is not None
    return found[0]


def test_a_rewind_returns_to_the_first_commit_of_its_cursor() -> None:
    assert returned(6, record(4, "a"), record(6, "b"), record(6, "fence"), None, record(9, "c")) == 2


def test_a_commit_of_two_snapshots_is_there_with_the_last_one() -> None:
    """A copy writes its rows, then names its columns: the first snapshot has their temporary names."""
    assert returned(6, record(4, "a"), record(6, "copy"), record(6, "copy"), record(6, "fence"), record(9, "c")) == 3
