"""Keyed tables: the log folded and merged, case by case, as the source would hold the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT), Column("w", TEXT)), ("id",))

Changes = list[ChangeRecord | list[ChangeRecord]]


def row(key: int, value: str | None, wide: str | None = "wide") -> Row:
    return {"id": key, "v": value, "w": wide}


def part(key: int, value: str) -> Row:
    """An image without the wide column, as an unchanged one is sent."""
    return {"id": key, "v": value}


def moved(table: HandMade, old: int, new: int, value: str) -> list[ChangeRecord]:
    return table.move({"id": old}, row(new, value))


CASES: dict[str, tuple[list[Row], Callable[[HandMade, int], Changes], list[tuple[int, str]]]] = {
    "1 chain then delete": (
        [row(0, "a")],
        lambda t, b: [moved(t, b + 0, b + 1, "a"), moved(t, b + 1, b + 2, "a"), t.delete(row(b + 2, "a"))],
        [],
    ),
    "1b chain": ([row(0, "a")], lambda t, b: [moved(t, b + 0, b + 1, "a"), moved(t, b + 1, b + 2, "a")], [(2, "a")]),
    "1c move then delete": ([row(0, "a")], lambda t, b: [moved(t, b + 0, b + 1, "a"), t.delete(row(b + 1, "a"))], []),
    "2 there and back": (
        [row(0, "a")],
        lambda t, b: [moved(t, b + 0, b + 1, "a"), moved(t, b + 1, b + 0, "b")],
        [(0, "b")],
    ),
    "3 swap through a temporary key": (
        [row(1, "x"), row(2, "y")],
        lambda t, b: [moved(t, b + 1, b + 9, "x"), moved(t, b + 2, b + 1, "y"), moved(t, b + 9, b + 2, "x")],
        [(1, "y"), (2, "x")],
    ),
    "4b shift in descending order": (
        [row(1, "x"), row(2, "y"), row(3, "z")],
        lambda t, b: [moved(t, b + 3, b + 4, "z"), moved(t, b + 2, b + 3, "y"), moved(t, b + 1, b + 2, "x")],
        [(2, "x"), (3, "y"), (4, "z")],
    ),
    "5 move out, insert at the old key, move again": (
        [row(0, "a")],
        lambda t, b: [moved(t, b + 0, b + 1, "a"), t.insert(row(b + 0, "b")), moved(t, b + 0, b + 2, "b")],
        [(1, "a"), (2, "b")],
    ),
    "5b move out, insert and delete at the old key": (
        [row(0, "a")],
        lambda t, b: [moved(t, b + 0, b + 1, "a"), t.insert(row(b + 0, "b")), t.delete(row(b + 0, "b"))],
        [(1, "a")],
    ),
    "6 insert on an existing key": ([row(0, "a")], lambda t, b: [t.insert(row(b + 0, "b"))], [(0, "b")]),
    "6b delete, insert": (
        [row(0, "a")],
        lambda t, b: [t.delete(row(b + 0, "a")), t.insert(row(b + 0, "b"))],
        [(0, "b")],
    ),
    "6b delete, insert, update": (
        [row(0, "a")],
        lambda t, b: [t.delete(row(b + 0, "a")), t.insert(row(b + 0, "b")), t.update(row(b + 0, "c"))],
        [(0, "c")],
    ),
    "6b delete, insert, delete": (
        [row(0, "a")],
        lambda t, b: [t.delete(row(b + 0, "a")), t.insert(row(b + 0, "b")), t.delete(row(b + 0, "b"))],
        [],
    ),
    "6b insert, delete, insert": (
        [],
        lambda t, b: [t.insert(row(b + 0, "a")), t.delete(row(b + 0, "a")), t.insert(row(b + 0, "b"))],
        [(0, "b")],
    ),
    "10 update whose old key is sent": (
        [row(0, "a")],
        lambda t, b: [t.move({"id": b + 0}, row(b + 1, "b"))],
        [(1, "b")],
    ),
}

BLOCK = 100
"""Every case has its own hundred keys of one table, so that one batch holds all cases."""


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> HandMade:
    return KitTable(kit, tmp_path, SCHEMA)


def test_the_copy_holds_what_the_source_holds(table: HandMade) -> None:
    blocks = {case: BLOCK * number for number, case in enumerate(CASES)}
    table.copy([{**one, "id": base + one["id"]} for case, base in blocks.items() for one in CASES[case][0]])
    changes = [change for case, base in blocks.items() for change in CASES[case][1](table, base)]
    assert table.apply(changes).outcome is Outcome.DONE
    found = table.rows()
    for case, base in blocks.items():
        held = [(key - base, value) for key, value, _ in found if base <= key < base + BLOCK]
        assert sorted(held) == CASES[case][2], case


def test_a_truncate_removes_rows_staged_before_it(table: HandMade) -> None:
    table.copy([row(0, "a"), row(7, "z")])
    table.apply([table.insert(row(1, "b")), table.truncate(), table.insert(row(2, "c")), table.insert(row(7, "y"))])
    assert table.rows() == [(2, "c", "wide"), (7, "y", "wide")]


def test_a_truncate_at_the_end_leaves_nothing(table: HandMade) -> None:
    table.copy([row(0, "a")])
    table.apply([table.update(row(0, "b")), table.truncate()])
    assert table.rows() == []


def test_a_null_in_a_key_column_matches_a_null(kit: TargetKit, tmp_path: Path) -> None:
    schema = TableSchema("public.t", (Column("n", INT), Column("id", INT), Column("v", TEXT)), ("n", "id"))
    table = KitTable(kit, tmp_path, schema)
    table.copy([{"n": None, "id": 1, "v": "a"}, {"n": None, "id": 2, "v": "b"}, {"n": 3, "id": 1, "v": "c"}])
    table.apply([table.update({"n": None, "id": 1, "v": "A"}), table.delete({"n": None, "id": 2, "v": "b"})])
    assert table.rows() == [(3, 1, "c"), (None, 1, "A")]


def test_updates_that_know_some_columns_only_are_folded_by_column(table: HandMade) -> None:
    table.copy([row(1, "a", "big"), row(2, "a", "big")])
    table.apply(
        [
            table.update(row(1, "b", "huge")),
            table.update(part(1, "c"), complete=False),
            table.update(part(2, "d"), complete=False),
            table.insert(row(3, "e", "new")),
            table.update(part(3, "f"), complete=False),
        ]
    )
    assert table.rows() == [(1, "c", "huge"), (2, "d", "big"), (3, "f", "new")]


def test_a_known_null_is_a_value_and_an_absent_column_is_not(table: HandMade) -> None:
    table.copy([row(1, "a", "big"), row(2, "a", "big")])
    table.apply(
        [
            table.update(row(1, "b", None)),
            table.update(part(1, "c"), complete=False),
            table.update({"id": 2, "w": None}, complete=False),
            table.update(part(2, "c"), complete=False),
        ]
    )
    assert table.rows() == [(1, "c", None), (2, "c", None)]


def test_a_new_life_knows_nothing_of_the_old_one(table: HandMade) -> None:
    table.copy([row(1, "a", "big")])
    table.apply([table.delete({"id": 1}), table.record("upsert", key="[1]", after='{"id":1,"v":"b"}')])
    assert table.rows() == [(1, "b", None)]


def test_a_replace_nulls_what_it_does_not_name(table: HandMade) -> None:
    table.copy([row(1, "a", "big")])
    table.apply([table.update(part(1, "b"), complete=False), table.update(part(1, "c"), complete=False, op="replace")])
    assert table.rows() == [(1, "c", None)]


def test_an_upsert_of_some_columns_inserts_or_updates(table: HandMade) -> None:
    table.copy([row(1, "a", "big")])
    table.apply([table.update(part(key, "b"), complete=False, op="upsert") for key in (1, 2)])
    assert table.rows() == [(1, "b", "big"), (2, "b", None)]


def test_a_moved_row_takes_its_unknown_columns_along(table: HandMade) -> None:
    """15b, over a chain, a swap, and from rows that the batch itself brought."""
    table.copy([row(1, "a", "one"), row(2, "b", "two"), row(3, "c", "three")])
    table.apply(
        [
            table.move({"id": 1}, part(9, "a"), complete=False),
            table.move({"id": 2}, part(1, "b"), complete=False),
            table.move({"id": 9}, part(2, "A"), complete=False),
            table.move({"id": 3}, part(4, "c"), complete=False),
            table.update(row(4, "c", "changed")),
            table.move({"id": 4}, part(5, "C"), complete=False),
            table.insert(row(6, "d", "six")),
            table.move({"id": 6}, part(7, "D"), complete=False),
            table.update(part(7, "E"), complete=False),
        ]
    )
    assert table.rows() == [(1, "b", "two"), (2, "A", "one"), (5, "C", "changed"), (7, "E", "six")]


def test_a_row_that_is_put_and_moves_on_takes_along_what_is_there(table: HandMade) -> None:
    table.copy([row(1, "a", "big")])
    table.apply(
        [
            table.update(part(1, "b"), complete=False, op="upsert"),
            table.move({"id": 1}, part(3, "c"), complete=False),
            table.update(part(2, "b"), complete=False, op="upsert"),
            table.move({"id": 2}, part(4, "c"), complete=False),
        ]
    )
    assert table.rows() == [(3, "c", "big"), (4, "c", None)]


def test_a_partial_update_without_its_row_blocks_the_table(table: HandMade) -> None:
    table.copy([row(1, "a")])
    result = table.apply([table.update(part(2, "b"), complete=False), table.update(row(1, "z"))])
    assert result.outcome is Outcome.BLOCKED
    assert result.problem is not None and result.problem.code == "TGT031"
    assert table.rows() == [(1, "a", "wide")]


def test_a_moved_row_without_its_origin_blocks_the_table(table: HandMade) -> None:
    table.copy([row(1, "a")])
    result = table.apply([table.move({"id": 5}, part(6, "b"), complete=False)])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"


def test_a_partial_update_behind_a_truncate_blocks_the_table(table: HandMade) -> None:
    table.copy([row(1, "a")])
    result = table.apply([table.truncate(), table.update(part(1, "b"), complete=False)])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"


def test_a_partial_upsert_behind_a_truncate_is_a_new_row(table: HandMade) -> None:
    table.copy([row(1, "a")])
    table.apply([table.truncate(), table.update(part(1, "b"), complete=False, op="upsert")])
    assert table.rows() == [(1, "b", None)]


def test_a_repair_across_a_truncate_leaves_a_row_that_moved_behind_it_as_it_is(table: HandMade) -> None:
    table.copy([row(1, "a")])
    table.apply(
        [table.truncate(), table.insert(row(2, "b")), table.move({"id": 2}, part(3, "c"), complete=False)],
    )
    before = table.rows()
    job, staged = table.staged(repair=(1, 1))
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE
    assert table.rows() == before == [(3, "c", "wide")]


def test_records_up_to_the_floor_are_in_the_copy_already(table: HandMade) -> None:
    table.land([])
    early = [table.update(row(1, "old")), table.delete(row(2, "b"))]
    table.copy([row(1, "new"), row(2, "b")])
    table.apply([*early, table.insert(row(3, "c"))])
    assert table.rows() == [(1, "new", "wide"), (2, "b", "wide"), (3, "c", "wide")]


def test_records_delivered_twice_change_nothing(table: HandMade) -> None:
    table.copy([row(1, "a")])
    records: Changes = [table.update(row(1, "b")), *moved(table, 1, 2, "c")]
    table.apply([*records, *records])
    assert table.rows() == [(2, "c", "wide")]


def test_several_windows_are_one_batch_and_windows_without_records_pass(table: HandMade) -> None:
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b"))])
    table.land([])
    table.land([table.update(part(1, "c"), complete=False)])
    assert table.apply().window == 4
    assert table.rows() == [(1, "c", "wide")]
    assert table.apply().outcome is Outcome.UNCHANGED
    held = table.held()
    assert held.control is not None and held.control.window == 4 and held.control.hi == {"s": str(table.order)}


class TestSoftDelete:
    @pytest.fixture
    def table(self, kit: TargetKit, tmp_path: Path) -> HandMade:
        return KitTable(kit, tmp_path, SCHEMA, OnDelete.SOFT)

    def test_a_deleted_row_is_flagged_and_keeps_its_last_values(self, table: HandMade) -> None:
        table.copy([row(1, "a"), row(2, "b"), row(3, "c"), row(4, "d")])
        table.apply(
            [
                table.delete({"id": 1}),
                table.update(part(2, "B"), complete=False),
                table.delete({"id": 2}),
                table.update(row(3, "C", "wider")),
                table.delete({"id": 3}),
            ]
        )
        assert table.rows("_cdc_deleted") == [
            (1, "a", "wide", True),
            (2, "B", "wide", True),
            (3, "C", "wider", True),
            (4, "d", "wide", False),
        ]

    def test_an_insert_revives_a_flagged_row(self, table: HandMade) -> None:
        table.copy([row(1, "a")])
        table.apply([table.delete({"id": 1})])
        table.apply([table.insert(row(1, "b", None))])
        assert table.rows("_cdc_deleted") == [(1, "b", None, False)]

    def test_a_partial_upsert_revives_a_flagged_row_without_its_old_values(self, table: HandMade) -> None:
        table.copy([row(1, "a")])
        table.apply([table.delete({"id": 1})])
        table.apply([table.update(part(1, "b"), complete=False, op="upsert")])
        assert table.rows("_cdc_deleted") == [(1, "b", None, False)]

    def test_a_truncate_flags_every_row(self, table: HandMade) -> None:
        table.copy([row(1, "a"), row(2, "b")])
        table.apply([table.truncate(), table.insert(row(2, "B"))])
        assert table.rows("_cdc_deleted") == [(1, "a", "wide", True), (2, "B", "wide", False)]

    def test_a_partial_update_of_a_flagged_row_blocks_the_table(self, table: HandMade) -> None:
        table.copy([row(1, "a")])
        table.apply([table.delete({"id": 1})])
        result = table.apply([table.update(part(1, "b"), complete=False)])
        assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"


def test_ignored_deletes_and_truncates_leave_the_rows(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, SCHEMA, OnDelete.IGNORE)
    table.copy([row(1, "a"), row(2, "b")])
    table.apply([table.delete({"id": 1}), table.truncate(), table.insert(row(3, "c"))])
    assert table.rows() == [(1, "a", "wide"), (2, "b", "wide"), (3, "c", "wide")]
