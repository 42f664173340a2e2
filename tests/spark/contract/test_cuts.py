"""The published cut: a read at it sees one moment of the source, whatever was committed since."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.states import TableState
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm


def publish(table: KitTable, window: int) -> None:
    current = table.target_state()
    one = CutTable("t", control(table).window, current.identity, current.version)
    table.job_tables().publish_cut(Cut("hand", window, "2026-01-01T00:00:00Z", (one,)))


def test_a_cut_is_read_as_it_was_published_or_not_at_all(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    assert kit.cut("id", "v") is None
    table.apply([changes.update(1, "b", "w")])
    publish(table, 1)
    assert kit.cut("id", "v") == (1, [(1, "b")])
    fence(table, TableState.PAUSED)
    fence(table, TableState.REPLICATING)
    assert kit.cut("id", "v") == (1, [(1, "b")]), "a fence changes no rows"
    table.apply([changes.update(1, "c", "w")])
    assert kit.cut("id", "v") == ((1, [(1, "b")]) if kit.keeps_cuts else None)
    publish(table, 3)
    assert kit.cut("id", "v") == (3, [(1, "c")]), "windows without records need no commit"
    publish(table, 2)
    assert kit.cut("id", "v") == (3, [(1, "c")]), "an older cut is not published"
    table.copy([changes.row(1, "d", "w")])
    assert kit.cut("id", "v") == ((3, [(1, "c")]) if kit.keeps_versions else None)
