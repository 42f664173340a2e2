"""Full copies: the first one, one over a table of ours or over a foreign table; and upkeep after many changes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.copies.copied_rows import CopiedRows
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm

ID = Column("id", INT, nullable=False)


def schema(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), ("id",))


def test_an_empty_copy_accepts_changes_and_no_second_copy_under_its_fence(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([])
    assert table.rows() == []
    assert table.apply([table.insert({"id": 1, "v": "a"})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "a")]
    writer = table.writer()
    with pytest.raises(Fenced, match="TGT030"):
        writer.copy(table.task(), CopiedRows(lambda: writer.read(table.task(), None)))(control(table))
    assert table.rows() == [(1, "a")]


def test_a_copy_over_a_table_replaces_rows_columns_and_cursor_at_once(kit: TargetKit, tmp_path: Path) -> None:
    """One column is removed, one is added, one changes its type, and the flag of soft deletes is added. If the
    target keeps versions, the old one still has its old rows."""
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT), Column("gone", TEXT), Column("n", TEXT)))
    table.copy([{"id": 1, "v": "a", "gone": "x", "n": "1"}, {"id": 2, "v": "b", "gone": "y", "n": "2"}])
    table.apply([table.insert({"id": 3, "v": "c", "gone": "z", "n": "3"})])
    before = table.target_state()
    fenced = control(table).fence
    other = KitTable(kit, tmp_path, schema(Column("v", TEXT), Column("n", INT), Column("new", TEXT)), OnDelete.SOFT)
    other.window, other.order = table.window, table.order
    rows = [{"id": 2, "v": "B", "n": 22, "new": "p"}, {"id": 4, "v": "d", "n": 44, "new": None}]
    other.copy(rows, TableState.RESYNCING)
    current, record = other.target_state(), control(other)
    assert (record.window, record.state.name) == (1, TableState.RESYNCING) and record.fence > fenced
    assert (current.identity == before.identity) == kit.keeps_versions
    assert other.rows("_cdc_deleted") == [(2, "B", 22, "p", False), (4, "d", 44, None, False)]
    assert set(other.read_at(None).columns) == {"id", "v", "n", "new", "_cdc_order", "_cdc_deleted"}
    seen = other.read_at(current.version)
    assert set(seen.columns) == set(other.read_at(None).columns) and seen.count() == 2
    assert table.read_at(before.version).count() == (3 if kit.keeps_versions else 2)
    fence(other)
    assert other.apply([other.update({"id": 4, "v": "D", "n": 45, "new": "q"})]).outcome is Outcome.DONE
    assert other.rows() == [(2, "B", 22, "p"), (4, "D", 45, "q")]


def test_a_copy_over_a_table_may_have_none_of_its_columns(kit: TargetKit, tmp_path: Path) -> None:
    """The key was renamed at the source."""
    table = KitTable(kit, tmp_path, schema(Column("n", INT)))
    table.copy([{"id": 1, "n": 2}])
    renamed = TableSchema("public.t", (Column("id2", INT, nullable=False), Column("m", INT)), ("id2",))
    other = KitTable(kit, tmp_path, renamed)
    other.window, other.order = table.window, table.order
    other.copy([{"id2": 5, "m": 6}], TableState.RESYNCING)
    assert other.rows() == [(5, 6)]


def test_a_copy_over_a_foreign_table_is_refused(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    kit.create()
    with pytest.raises(ForeignTarget, match="TGT012"):
        table.copy([{"id": 1, "v": "a"}])


def test_upkeep_keeps_rows_and_cursor_and_is_due_once_in_ten_windows(kit: TargetKit, tmp_path: Path) -> None:
    """Half of the rows are deleted, so the figures require it. Databases need no upkeep."""
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([{"id": key, "v": "a"} for key in range(40)])
    for _ in range(8):
        table.land()
    deleted = table.apply([table.delete({"id": key}) for key in range(0, 40, 2)])
    before = table.target_state()
    result = table.apply([table.update({"id": 31, "v": "b"})])
    assert result.outcome is Outcome.DONE and result.window == 10
    kept_up = table.target_state()
    done = [one.detail["upkeep"] for one in (deleted, result) if "upkeep" in one.detail]
    assert {chore for each in done for chore in each.split(", ")} <= kit.chores, done
    assert len(done) == bool(kit.chores)
    assert kept_up.control is not None and kept_up.control.window == 10 and not kept_up.restored
    assert kept_up.identity == before.identity
    assert len(table.rows()) == 20 and (31, "b") in table.rows()
    writer = table.writer()
    assert writer.maintain(table.task(), timedelta(days=7)) == ()
    longer = ("retain log",) if kit.kind == "delta" else ()
    assert [writer.maintain(table.task(), timedelta(days=90)) for _ in range(2)] == [longer, ()]
    assert table.target_state().control == kept_up.control
    assert table.apply([table.update({"id": 33, "v": "c"})]).outcome is Outcome.DONE
