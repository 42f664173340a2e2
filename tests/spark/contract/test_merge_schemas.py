"""Schema changes on the way to the target, and slices of the log applied again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.plain import from_plain
from airflow_cdc_provider.core.steps import Batch, Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
ID, V = Column("id", INT, nullable=False), Column("v", TEXT)
PLAIN = Column("p", TEXT)
DEFAULTED = Column("d", TEXT, initial='"x"')


def schema(*columns: Column) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), ("id",))


def row(key: int, **values: str | None) -> Row:
    return {"id": key, **values}


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> HandMade:
    table = KitTable(kit, tmp_path, schema(V))
    table.copy([row(1, v="a"), row(2, v="b"), row(3, v="c"), row(4, v="d")])
    return table


def test_an_added_column_holds_its_initial_value_in_every_older_row(table: HandMade) -> None:
    """Rows the batch does not touch, rows it knew before the change, partly or wholly, and rows it brought after it."""
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


def test_a_schema_change_without_rows_reaches_the_target(table: HandMade) -> None:
    assert table.apply([table.alter(schema(V, DEFAULTED))]).window == 1
    assert {values[2] for values in table.rows()} == {"x"}
    held = table.held().control
    assert held is not None and held.schema == schema(V, DEFAULTED)


def test_a_dropped_column_stays_and_a_column_of_the_same_name_starts_anew(table: HandMade) -> None:
    table.apply([table.alter(schema()), table.insert(row(5))])
    assert table.rows() == [(1,), (2,), (3,), (4,), (5,)]
    table.apply([table.alter(schema(V)), table.insert(row(6, v="new")), table.update(row(1, v="again"))])
    assert table.rows() == [(1, "again"), (2, None), (3, None), (4, None), (5, None), (6, "new")]


def test_a_schema_change_that_the_copy_holds_already_is_passed_over(table: HandMade) -> None:
    """The first window after a resync may begin before its anchor."""
    early = [table.update(row(1, v="A")), table.alter(schema(PLAIN))]
    table.copy([row(1, p="P")])
    assert table.apply([*early, table.insert(row(2, p="Q"))]).outcome is Outcome.DONE
    assert table.rows() == [(1, "P"), (2, "Q")]


def test_a_breaking_change_blocks_behind_what_came_before_it(table: HandMade) -> None:
    table.land([table.update(row(1, v="A"))])
    table.land([table.alter(schema(replace(V, type=INT))), table.insert({"id": 9, "v": 5})])
    job, result = table.staged()
    assert (result.outcome, result.window) == (Outcome.BLOCKED, 1)
    assert result.problem is not None and "resync hand --table public.t" in result.problem.do
    assert table.merged(job).window == 1
    assert table.rows()[0] == (1, "A")
    _, result = table.staged()
    assert (result.outcome, result.window) == (Outcome.BLOCKED, None)


def test_an_added_column_whose_older_values_nobody_knows_blocks(table: HandMade) -> None:
    change = table.alter(schema(V, PLAIN), warnings=["initial_unknown"])
    table.land([change])
    _, result = table.staged()
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and "hold: p" in result.problem.found


def test_a_repair_gives_the_keys_of_a_slice_what_they_have_become_and_leaves_the_cursor(
    table: HandMade, kit: TargetKit
) -> None:
    table.apply([table.update(row(1, v="A")), table.delete(row(2, v="b")), table.insert(row(5, v="e"))])
    table.apply([table.update(row(1, v="AA")), table.update(row(3, v="C"))])
    before = table.held().control
    assert before is not None
    kit.write("UPDATE {t} SET v = 'wrong'")
    kit.write("DELETE FROM {t} WHERE id = 5")
    kit.write("INSERT INTO {t} VALUES (2, 'back', '00000000')")
    job, result = table.staged(repair=(1, 1))
    assert result.outcome is Outcome.DONE and result.detail["staged"] == 3
    result = table.merged(job)
    assert (result.outcome, result.window) == (Outcome.DONE, before.window)
    assert result.fence is not None and result.fence > before.fence
    assert table.rows() == [(1, "AA"), (3, "wrong"), (4, "wrong"), (5, "e")]
    job, _ = table.staged(repair=(2, 2))
    table.merged(job)
    assert table.rows() == [(1, "AA"), (3, "C"), (4, "wrong"), (5, "e")]


def test_a_repair_brings_deleted_rows_back_as_deleted_where_the_log_knows_them(kit: TargetKit, tmp_path: Path) -> None:
    """Known: born in the slice, born partly known and completed, or told whole by the delete. Row 4 is not: its delete
    says the key only. Row 5 was deleted outside the slice, row 6 lives again."""
    table = KitTable(kit, tmp_path, schema(V, PLAIN), OnDelete.SOFT)
    table.copy([row(key, v="old", p="wide") for key in (1, 3, 4, 5, 6)])
    table.apply([table.delete(row(5, v="old", p="wide"))])
    table.apply(
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
    table.apply([table.insert(row(6, v="again", p=None))])
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


def test_a_row_that_is_gone_stays_away_where_deletes_are_not_soft(table: HandMade) -> None:
    table.apply([table.insert(row(5, v="e")), table.delete(row(5, v="e"))])
    job, _ = table.staged(repair=(1, 1))
    table.merged(job)
    assert [values[0] for values in table.rows()] == [1, 2, 3, 4]


def test_an_interval_the_log_has_lost_is_not_repaired(table: HandMade) -> None:
    table.apply([table.update(row(1, v="A"))])
    _, result = table.staged(repair=(0, 1))
    assert result.problem is not None and result.problem.code == "CMD010" and "oldest window 1" in result.problem.found


def test_a_keyless_table_is_not_repaired(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, TableSchema("public.t", (ID, V)))
    table.copy([row(1, v="a")])
    table.apply([table.insert(row(2, v="b"))])
    _, result = table.staged(repair=(1, 1))
    assert result.problem is not None and "no key" in result.problem.found


def test_the_bounds_of_a_batch_cover_its_keys_in_few_ranges(table: HandMade) -> None:
    table.land([table.insert(row(key, v="x")) for key in [*range(10, 20), *range(1000, 1010), 5000]])
    job, _ = table.staged()
    text = job.log.store.read(f"batches/public.t/{job.step.attempt}/batch.json")
    batch = from_plain(Batch, json.loads(text))
    assert 1 <= len(batch.bounds) <= 16
    assert all(name == "id" for name, _, _ in batch.bounds)
    assert table.merged(job).counts["inserted"] == 21
