"""Tables without key: truncates, ignored deletes, and equal rows that are fewer than shall go."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.spark.contract.fold_cases import KEYLESS, BareTeller
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm

A, B = ("a", 1.5), ("b", 1.5)


def test_a_truncate_takes_all_equal_rows_and_fewer_rows_than_shall_go_block_the_table(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, KEYLESS)
    tell = BareTeller(table, 1)
    table.copy([tell.row(*A), tell.row(*A), tell.row(*B)])
    table.apply([tell.delete(*A), table.truncate(), tell.insert(*A)])
    assert table.rows() == [(1, *A)]
    result = table.apply([tell.delete(*A), tell.delete(*A)])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"
    assert table.rows() == [(1, *A)]


def test_ignored_deletes_leave_equal_rows_while_updates_move_them(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYLESS, OnDelete.IGNORE)
    tell = BareTeller(table, 1)
    table.copy([tell.row(*A), tell.row(*A)])
    table.apply([tell.delete(*A), tell.update(A, B), table.truncate()])
    assert table.rows() == [(1, *A), (1, *B)]
