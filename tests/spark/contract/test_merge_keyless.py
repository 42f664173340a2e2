"""Tables without key: equal rows are counted, not told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t",
    (
        Column("c", LogicalType(Kind.INT32)),
        Column("v", LogicalType(Kind.TEXT)),
        Column("f", LogicalType(Kind.FLOAT64)),
    ),
)


def row(case: int, value: str | None, number: float | str | None = None) -> Row:
    """``case`` keeps the cases of one batch apart."""
    return {"c": case, "v": value, "f": number}


def held(table: HandMade, case: int) -> list[str | None]:
    return [value for one, value, _ in table.rows() if one == case]


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> HandMade:
    return KitTable(kit, tmp_path, SCHEMA)


def test_equal_rows_are_counted(table: HandMade) -> None:
    """The cases 8 to 8d, a NULL, a row that only passes by, and floats that are equal numbers but not equal copies."""
    table.copy(
        [row(case, "a") for case in (1, 1, 3, 3, 4, 4)]
        + [row(5, None), row(5, None), row(7, "z", 0.0), row(7, "z", -0.0), row(8, "n", "NaN"), row(8, "n", "NaN")]
    )
    table.apply(
        [
            table.delete(row(1, "a")),
            table.insert(row(2, "a")),
            table.insert(row(2, "a")),
            table.delete(row(2, "a")),
            table.update(row(3, "b"), before=row(3, "a")),
            table.update(row(4, "b"), before=row(4, "a")),
            table.update(row(4, "b"), before=row(4, "a")),
            table.delete(row(5, None)),
            table.insert(row(6, "x")),
            table.delete(row(6, "x")),
            table.delete(row(7, "z", -0.0)),
            table.delete(row(8, "n", "NaN")),
        ]
    )
    assert [held(table, case) for case in range(1, 9)] == [
        ["a"],
        ["a"],
        ["a", "b"],
        ["b", "b"],
        [None],
        [],
        ["z"],
        ["n"],
    ]
    assert [str(number) for case, _, number in table.rows() if case == 7] == ["0.0"]


def test_records_delivered_twice_count_once(table: HandMade) -> None:
    table.copy([])
    records = [table.insert(row(1, "a")), table.insert(row(1, "a"))]
    table.apply([*records, *records])
    assert held(table, 1) == ["a", "a"]


def test_records_up_to_the_floor_are_in_the_copy_already(table: HandMade) -> None:
    table.land([])
    early = table.insert(row(1, "a"))
    table.copy([row(1, "a")])
    table.apply([early, table.insert(row(1, "b"))])
    assert held(table, 1) == ["a", "b"]


def test_a_truncate_takes_all_equal_rows(table: HandMade) -> None:
    table.copy([row(1, "a"), row(1, "a"), row(2, "b")])
    table.apply([table.delete(row(1, "a")), table.truncate(), table.insert(row(1, "a"))])
    assert [(case, value) for case, value, _ in table.rows()] == [(1, "a")]


def test_fewer_equal_rows_than_shall_go_block_the_table(table: HandMade) -> None:
    table.copy([row(1, "a")])
    result = table.apply([table.delete(row(1, "a")), table.delete(row(1, "a"))])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"
    assert held(table, 1) == ["a"]


def test_ignored_deletes_leave_equal_rows_while_updates_move_them(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, SCHEMA, OnDelete.IGNORE)
    table.copy([row(1, "a"), row(1, "a")])
    table.apply([table.delete(row(1, "a")), table.update(row(1, "b"), before=row(1, "a")), table.truncate()])
    assert held(table, 1) == ["a", "b"]
