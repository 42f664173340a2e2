"""A target counts the rows of its table without reading them."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.spark.contract.control_records import fence
from tests.spark.contract.fold_cases import KEYED, KEYLESS, KeyedChanges, KeylessChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm


def test_rows_are_counted_after_copies_changes_fences_and_truncates(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(key, "a", "w") for key in range(20)])
    assert table.row_count() == 20
    table.apply([*(changes.delete(key) for key in range(5)), changes.insert(30, "b", "w"), changes.update(7, "c", "w")])
    table.apply([changes.update(8, "d", "w"), changes.delete(7), changes.move(9, 31, "e")])
    fence(table)
    assert table.row_count() == len(table.rows()) == 15
    table.apply([table.truncate(), changes.insert(8, "a", "w"), changes.delete(8), changes.insert(1, "a", "w")])
    assert table.row_count() == len(table.rows()) == 1


def test_soft_deleted_rows_are_counted_and_a_row_that_is_upserted_again_counts_once(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, KEYED, OnDelete.SOFT)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(key, "a", "w") for key in range(4)])
    table.apply([changes.delete(1), changes.delete(2)])
    table.apply([changes.update(1, "A", op="upsert"), changes.insert(2, "b", "w"), changes.insert(9, "c", "w")])
    assert table.row_count() == len(table.rows()) == 5


def test_equal_rows_without_key_are_counted_one_by_one(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row("a", 1.5), changes.row("a", 1.5), changes.row("b", 1.5)])
    table.apply([changes.delete("a", 1.5), changes.insert("c", 1.5), changes.insert("c", 1.5)])
    assert table.row_count() == len(table.rows()) == 4


@pytest.mark.nightly
def test_upkeep_changes_no_count(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(key, "a", "w") for key in range(40)])
    for _ in range(8):
        table.land()
    table.apply([changes.delete(key) for key in range(0, 40, 2)])
    table.apply([changes.update(31, "b", "w")])
    kit.compact()
    table.apply([changes.update(33, "c", "w"), changes.delete(35)])
    assert table.row_count() == len(table.rows()) == 19
