"""The fold of changes that arrive out of order, against a dictionary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from spark_jobs.folds.lives import FoldError
from spark_jobs.folds.unordered_rows import newest_changes, tombstones
from spark_jobs.windows.driver_reads import CarriedRecord, carried_table

NOW = "2026-01-01"
CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["update", "delete"]), st.booleans()), max_size=12
).flatmap(lambda changes: st.tuples(st.just(changes), st.permutations(range(len(changes)))))


def entry(key: str, op: str, number: int, carried: bool = False, after: str = "{}") -> CarriedRecord:
    keys = {"key_before": key} if op == "delete" else {"key": key, "after": after, "after_complete": True}
    record = ChangeRecord("t", op, f"{number:04d}", "s", event_id="", **keys)  # type: ignore[arg-type]
    return CarriedRecord(record, Carried.TOMBSTONE, "earlier") if carried else CarriedRecord(record)


@given(CHANGES)
def test_the_newest_change_of_each_key_wins_in_any_order(
    generated: tuple[list[tuple[str, str, bool]], list[int]],
) -> None:
    changes, order = generated
    entries = [entry(key, op, number, carried and op == "delete") for number, (key, op, carried) in enumerate(changes)]
    newest = newest_changes(carried_table([entries[number] for number in order]))
    expected: dict[str, Any] = {one.record.key or one.record.key_before or "": one for one in entries}
    found = {row["key"] or row["key_before"]: (row["order_key"], row["kind"]) for row in newest.to_pylist()}
    assert found == {key: (one.record.order_key, one.kind) for key, one in expected.items()}
    buried = tombstones(newest, "0003", NOW).to_pylist()
    assert {(row["order_key"], row["kind"], row["since"]) for row in buried} == {
        (one.record.order_key, Carried.TOMBSTONE, one.since or NOW)
        for one in expected.values()
        if one.record.op == "delete" and one.record.order_key > "0003"
    }


def test_of_a_change_and_its_tombstone_the_tombstone_counts() -> None:
    (row,) = newest_changes(carried_table([entry("a", "delete", 1), entry("a", "delete", 1, True)])).to_pylist()
    assert row["kind"] == Carried.TOMBSTONE


def test_two_different_changes_at_one_position_are_an_error() -> None:
    with pytest.raises(FoldError):
        newest_changes(carried_table([entry("a", "update", 1), entry("a", "update", 1, after='{"v":1}')]))
    assert len(newest_changes(carried_table([entry("a", "update", 1), entry("a", "update", 1)]))) == 1


def test_a_change_without_a_key_is_an_error() -> None:
    with pytest.raises(FoldError):
        newest_changes(carried_table([CarriedRecord(ChangeRecord("t", "update", "1", "s", event_id=""))]))
