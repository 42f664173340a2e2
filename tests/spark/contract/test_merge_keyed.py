"""Keyed tables: deletes of every kind, truncates, NULLs in keys, and changes without their row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.spec.definition import OnDelete, Source
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from tests.spark.contract.fold_cases import INT, KEYED, TEXT, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm


def changes_of(table: KitTable) -> KeyedChanges:
    return KeyedChanges(table, 0)


def refused(result: TableResult) -> bool:
    return result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"


def test_a_truncate_removes_all_earlier_rows_and_a_change_without_its_row_applies_nothing(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = changes_of(table)
    table.copy([changes.row(0, "a", "w"), changes.row(7, "z", "w")])
    table.apply(
        [changes.insert(1, "b", "w"), table.truncate(), changes.insert(2, "c", "w"), changes.insert(7, "y", "w")]
    )
    assert table.rows() == [(2, "c", "w"), (7, "y", "w")]
    table.apply([changes.update(2, "d", "w"), table.truncate()])
    assert table.rows() == []
    table.apply([changes.insert(1, "a", "w")])
    assert refused(table.apply([changes.update(2, "b"), changes.update(1, "z", "w")]))
    assert table.rows() == [(1, "a", "w")]


def test_a_soft_delete_flags_and_keeps_an_insert_revives_and_a_truncate_flags_all(
    kit: TargetKit, tmp_path: Path
) -> None:
    """13: a flagged row is inserted again. A change of some columns of a flagged row is one without its row."""
    table = KitTable(kit, tmp_path, KEYED, OnDelete.SOFT)
    changes = changes_of(table)
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w"), changes.row(3, "c", "w")])
    table.apply([changes.delete(1), changes.update(2, "B"), changes.delete(2)])
    assert table.rows("_cdc_deleted") == [(1, "a", "w", True), (2, "B", "w", True), (3, "c", "w", False)]
    table.apply([changes.insert(1, "A", None), changes.delete(3), changes.insert(3, "x", "y"), changes.delete(3)])
    assert table.rows("_cdc_deleted") == [(1, "A", None, False), (2, "B", "w", True), (3, "x", "y", True)]
    table.apply([table.truncate(), changes.insert(3, "C", "w")])
    assert table.rows("_cdc_deleted") == [(1, "A", None, True), (2, "B", "w", True), (3, "C", "w", False)]
    assert refused(table.apply([changes.update(1, "x")]))


@pytest.mark.nightly
@pytest.mark.parametrize("on_delete", [OnDelete.HARD, OnDelete.SOFT])
def test_a_truncate_that_a_feed_delivers_late_keeps_the_rows_of_later_changes(
    kit: TargetKit, tmp_path: Path, on_delete: OnDelete
) -> None:
    table = KitTable(kit, tmp_path, KEYED, on_delete)
    table.definition = replace(table.definition, source=Source("files", "none", options={"format": "debezium"}))
    changes = changes_of(table)
    table.copy([changes.row(0, "a", "w"), changes.row(7, "z", "w")])
    late = table.truncate()
    table.apply([changes.insert(1, "b", "w"), changes.insert(7, "y", "w")])
    table.apply([late, changes.insert(3, "c", "w"), changes.update(1, "B")])
    live = [(1, "B", "w"), (3, "c", "w"), (7, "y", "w")]
    if on_delete is OnDelete.HARD:
        assert table.rows() == live
    else:
        assert table.rows("_cdc_deleted") == [(0, "a", "w", True), *((*row, False) for row in live)]


def test_a_changed_key_leaves_its_old_row_flagged_and_a_row_that_moves_back_revives_it(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, KEYED, OnDelete.SOFT)
    changes = changes_of(table)
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.move(1, 2, "b")])
    assert table.rows("_cdc_deleted") == [(1, "a", "w", True), (2, "b", "w", False)]
    table.apply([changes.move(2, 1, "c")])
    assert table.rows("_cdc_deleted") == [(1, "c", "w", False), (2, "b", "w", True)]


def test_a_flagged_row_that_is_upserted_keeps_no_old_value(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED, OnDelete.SOFT)
    changes = changes_of(table)
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    table.apply([changes.delete(1)])
    table.apply([changes.update(1, "A", op="upsert"), changes.update(2, "B", op="upsert")])
    assert table.rows("_cdc_deleted") == [(1, "A", None, False), (2, "B", "w", False)]


def test_ignored_deletes_and_truncates_keep_the_last_values_of_the_rows(kit: TargetKit, tmp_path: Path) -> None:
    """Changes of a row before its delete count, however the log is cut into batches."""
    table = KitTable(kit, tmp_path, KEYED, OnDelete.IGNORE)
    changes = changes_of(table)
    table.copy([changes.row(1, "a", "w"), changes.row(2, "b", "w")])
    table.apply(
        [
            *(changes.update(1, "A"), changes.delete(1), table.truncate(), changes.insert(3, "c", "w")),
            *(changes.insert(4, "d", "w"), changes.delete(4), changes.update(2, "B", "w"), changes.move(2, 5, "e")),
        ]
    )
    assert table.rows() == [(1, "A", "w"), (2, "B", "w"), (3, "c", "w"), (4, "d", "w"), (5, "e", "w")]


def test_a_null_in_a_key_column_matches_a_null(kit: TargetKit, tmp_path: Path) -> None:
    """7 and 7b: a NULL key is different from an unknown key."""
    columns = (Column("n", INT), Column("id", INT), Column("v", TEXT), Column("w", TEXT))
    table = KitTable(kit, tmp_path, TableSchema("public.t", columns, ("n", "id")))
    table.copy([{"n": n, "id": key, "v": "a", "w": "w"} for n, key in ((None, 1), (None, 2), (None, 3), (3, 1))])
    table.apply(
        [
            table.update({"n": None, "id": 1, "v": "A", "w": "W"}),
            table.delete({"n": None, "id": 2}),
            table.move({"n": None, "id": 3}, {"n": 4, "id": 3, "v": "moved"}, complete=False),
        ]
    )
    assert table.rows() == [(3, 1, "a", "w"), (4, 3, "moved", "w"), (None, 1, "A", "W")]


def test_columns_may_be_named_like_the_aliases_of_sql(kit: TargetKit, tmp_path: Path) -> None:
    names = (("t", INT), ("s", INT), ("c", TEXT), ("p", TEXT))
    columns = tuple(Column(name, kind, nullable=kind is TEXT) for name, kind in names)
    table = KitTable(kit, tmp_path, TableSchema("public.t", columns, ("t", "s")))

    def row(*values: object) -> dict[str, object]:
        return dict(zip("tscp", values, strict=False))

    table.copy([row(1, 1, "a", "w"), row(2, 1, "b", "w"), row(3, 1, "c", "w")])
    table.apply(
        [
            *(table.update(row(1, 1, "A", "W")), table.delete(row(2, 1)), table.insert(row(4, 1, "d", "w"))),
            table.update(row(3, 1, "C"), complete=False),
        ]
    )
    assert table.rows() == [(1, 1, "A", "W"), (3, 1, "C", "w"), (4, 1, "d", "w")]
    table.apply([table.truncate(), table.insert(row(1, 1, "e", None))])
    assert table.rows() == [(1, 1, "e", None)]


def test_an_older_change_never_overwrites_a_newer_row_and_the_cursor_does_not_depend_on_rows(
    kit: TargetKit, tmp_path: Path
) -> None:
    """14: the row is newer than its change in the batch. 9: no row is left that records how far the table is."""
    table = KitTable(kit, tmp_path, KEYED)
    changes = changes_of(table)
    table.copy([changes.row(1, "new", "w"), changes.row(2, "b", "w")])
    kit.write("UPDATE {t} SET _cdc_order = 'ffffffff' WHERE id = 1")
    table.apply([changes.update(1, "old", "w"), changes.delete(2, "b", "w")])
    assert table.rows() == [(1, "new", "w")]
    _, again = table.staged()
    assert (again.outcome, again.window) == (Outcome.UNCHANGED, 1)
