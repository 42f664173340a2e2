"""Tables without key: truncates, ignored deletes, deletes of more equal rows than exist, and former columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.target import KeysRowsByValues
from tests.spark.contract.fold_cases import INT, KEYLESS, TEXT, KeylessChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm

A, B = ("a", 1.5), ("b", 1.5)
NARROW = TableSchema("public.t", (Column("n", INT),))
WIDE = TableSchema("public.t", (*NARROW.columns, Column("v", TEXT)))


def test_a_truncate_removes_all_equal_rows_and_a_delete_without_its_row_blocks_the_table(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row(*A), changes.row(*A), changes.row(*B)])
    table.apply([changes.delete(*A), table.truncate(), changes.insert(*A)])
    assert table.rows() == [(1, *A)]
    result = table.apply([changes.delete(*A), changes.delete(*A)])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"
    assert table.rows() == [(1, *A)]


def test_ignored_deletes_leave_equal_rows_while_updates_move_them(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS, OnDelete.IGNORE)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row(*A), changes.row(*A)])
    table.apply([changes.delete(*A), changes.update(A, B), table.truncate()])
    assert table.rows() == [(1, *A), (1, *B)]


@pytest.mark.nightly
def test_a_row_is_found_after_a_column_was_dropped_or_the_table_stops(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    changes = KeylessChanges(table, 1)
    table.copy([changes.row(*A), changes.row(*B)])
    shorter = replace(KEYLESS, columns=KEYLESS.columns[:2])
    dropped = table.apply([table.alter(shorter), table.insert({"c": 1, "v": "c"})])
    if isinstance(table.job_tables(), KeysRowsByValues):
        assert dropped.outcome is Outcome.BLOCKED and dropped.problem is not None and dropped.problem.code == "SCH001"
        return
    table.schema = shorter
    assert table.apply([table.delete({"c": 1, "v": "a"})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "b"), (1, "c")]


@pytest.mark.nightly
def test_the_values_of_a_former_column_do_not_count_in_a_new_one_of_its_name(kit: TargetKit, tmp_path: Path) -> None:
    """They differ in rows that are equal without them."""
    table = KitTable(kit, tmp_path, WIDE)
    if isinstance(table.job_tables(), KeysRowsByValues):
        pytest.skip("a dropped column stops the table")
    table.copy([{"n": 1, "v": "x"}, {"n": 1, "v": None}, {"n": 3, "v": "x"}])
    table.apply([table.alter(NARROW), table.insert({"n": 2})])
    table.apply([table.alter(WIDE), table.delete({"n": 1, "v": None}), table.delete({"n": 3, "v": None})])
    assert table.rows() == [(1, None), (2, None)]


def test_a_row_older_than_a_column_of_short_floats_is_found_by_the_initial_value(
    kit: TargetKit, tmp_path: Path
) -> None:
    """As a double, 0.1 of 32 bits has other digits than its text."""
    table = KitTable(kit, tmp_path, NARROW)
    real = Column("r", LogicalType(Kind.FLOAT32), initial="0.1")
    table.copy([{"n": 1}, {"n": 2}])
    table.apply([table.alter(replace(NARROW, columns=(*NARROW.columns, real))), table.insert({"n": 3, "r": 0.1})])
    deleted = table.apply([table.delete({"n": n, "r": 0.1}) for n in (1, 3)])
    assert deleted.outcome is Outcome.DONE
    assert [n for n, *_ in table.rows()] == [2]
