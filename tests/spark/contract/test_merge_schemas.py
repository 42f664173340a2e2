"""Schema changes in the target, and repairs of slices of the log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from tests.spark.contract.control_records import control
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

ID, V = Column("id", INT, nullable=False), Column("v", TEXT)
PLAIN = Column("p", TEXT)
DEFAULTED = Column("d", TEXT, initial='"x"')
NUMBERED = Column("n", INT, initial="7")


def schema(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), ("id",))


def row(key: int, **values: str | int | None) -> Row:
    return {"id": key, **values}


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> ScriptedTable:
    table = KitTable(kit, tmp_path, schema(V))
    table.copy([row(1, v="a"), row(2, v="b"), row(3, v="c"), row(4, v="d")])
    return table


def test_an_added_column_holds_its_initial_value_in_every_older_row(table: ScriptedTable) -> None:
    """Rows that the batch does not change, rows of which it contains values from before the change, all or some, and
    rows that it adds after the change. Then a column is added without any row."""
    early = [
        table.update(row(1, v="A")),
        table.update({"id": 2}, complete=False),
        table.insert(row(5, v="e")),
    ]
    table.apply([*early, table.alter(schema(V, PLAIN, DEFAULTED)), table.insert(row(6, v="f", p="p", d=None))])
    assert table.rows() == [
        (1, "A", None, "x"),
        (2, "b", None, "x"),
        (3, "c", None, "x"),
        (4, "d", None, "x"),
        (5, "e", None, "x"),
        (6, "f", "p", None),
    ]
    numbered = schema(V, PLAIN, DEFAULTED, NUMBERED)
    assert table.apply([table.alter(numbered)]).window == 2
    assert {values[4] for values in table.rows()} == {7}
    assert control(table).schema == numbered


def test_a_dropped_column_stays_and_a_column_of_the_same_name_starts_anew(table: ScriptedTable) -> None:
    table.apply([table.alter(schema()), table.insert(row(5))])
    assert table.rows() == [(1,), (2,), (3,), (4,), (5,)]
    table.apply([table.alter(schema(V)), table.insert(row(6, v="new")), table.update(row(1, v="again"))])
    assert table.rows() == [(1, "again"), (2, None), (3, None), (4, None), (5, None), (6, "new")]


@pytest.mark.nightly
def test_a_moved_row_has_nothing_of_a_former_column_in_a_new_one_of_its_name(table: ScriptedTable) -> None:
    table.apply([table.alter(schema()), table.insert(row(5))])
    table.apply([table.alter(schema(V)), *table.move(row(1), row(7), complete=False), table.insert(row(6, v="new"))])
    assert table.rows() == [(2, None), (3, None), (4, None), (5, None), (6, "new"), (7, None)]


def test_a_new_column_with_another_type_than_a_former_one_of_its_name_is_not_written_into_it(
    table: ScriptedTable,
) -> None:
    table.apply([table.alter(schema()), table.insert(row(5))])
    number = replace(V, type=INT)
    stopped = table.apply([table.alter(schema(number)), table.insert(row(6, v=1))])
    assert stopped.outcome is Outcome.BLOCKED and stopped.problem is not None and stopped.problem.code == "SCH005"


def test_a_repair_gives_the_keys_of_a_slice_their_current_rows_and_keeps_the_cursor(
    table: ScriptedTable, kit: TargetKit
) -> None:
    """A row that the slice deleted and another client restored is deleted again; a row that the slice inserted and a
    later window deleted stays deleted."""
    table.apply([table.update(row(1, v="A")), table.delete(row(2, v="b")), table.insert(row(5, v="e"))])
    table.apply([table.update(row(1, v="AA")), table.update(row(3, v="C")), table.delete(row(5, v="e"))])
    before = control(table)
    kit.write("UPDATE {t} SET v = 'wrong'")
    kit.write("INSERT INTO {t} VALUES (2, 'back', '00000000')")
    job, result = table.staged(repair=(1, 1))
    assert result.outcome is Outcome.DONE and result.detail["staged"] == 3
    result = table.merged(job)
    assert (result.outcome, result.window) == (Outcome.DONE, before.window)
    assert result.fence is not None and result.fence > before.fence
    assert table.rows() == [(1, "AA"), (3, "wrong"), (4, "wrong")]
    kit.write("DELETE FROM {t} WHERE id = 3")
    job, _ = table.staged(repair=(2, 2))
    table.merged(job)
    assert table.rows() == [(1, "AA"), (3, "C"), (4, "wrong")]


@pytest.mark.nightly
def test_a_repair_restores_rows_as_deleted_if_the_log_contains_their_values(kit: TargetKit, tmp_path: Path) -> None:
    """Restored: rows inserted in the slice, inserted partially and completed, or contained as a whole in their
    delete. Row 4 is not: its delete contains the key alone. Row 5 was deleted outside the slice, row 6 was inserted
    again."""
    table = KitTable(kit, tmp_path, schema(V, PLAIN), OnDelete.SOFT)
    table.copy([row(key, v="old", p="wide") for key in (1, 3, 4, 5, 6)])
    table.land([table.delete(row(5, v="old", p="wide"))])
    table.land(
        [
            table.insert(row(2, v="new", p="x")),
            table.update(row(2, v="newer"), complete=False),
            table.delete({"id": 2}),
            table.update(row(3, v="C", p="D")),
            table.delete({"id": 3}),
            table.delete(row(1, v="old", p="wide")),
            table.delete({"id": 4}),
            table.delete({"id": 6}),
        ]
    )
    assert table.apply([table.insert(row(6, v="again", p=None))]).window == 3
    kit.write("DELETE FROM {t}")
    job, _ = table.staged(repair=(2, 2))
    result = table.merged(job)
    assert result.outcome is Outcome.DONE and result.detail["lost"] == 1
    assert table.rows("_cdc_deleted") == [
        (1, "old", "wide", True),
        (2, "newer", "x", True),
        (3, "C", "D", True),
        (6, "again", None, False),
    ]
