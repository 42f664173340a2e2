"""Fold and merge into databases: what the source would hold, looked at without our code."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.contract import test_merge_keyless as keyless
from tests.spark.contract.test_merge_keyed import BLOCK, CASES, SCHEMA, moved, part, row
from tests.spark.databases import Database
from tests.spark.hand_made import HandMade

pytestmark = pytest.mark.jvm

ROW = ("id", "v", "w")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, warehouse: Database) -> HandMade:
    return warehouse.table(spark, tmp_path, SCHEMA)


@pytest.fixture
def soft(spark: SparkSession, tmp_path: Path, warehouse: Database) -> HandMade:
    return warehouse.table(spark, tmp_path, SCHEMA, OnDelete.SOFT)


def test_the_copy_holds_what_the_source_holds(table: HandMade, warehouse: Database) -> None:
    blocks = {case: BLOCK * number for number, case in enumerate(CASES)}
    table.copy([{**one, "id": base + one["id"]} for case, base in blocks.items() for one in CASES[case][0]])
    changes = [change for case, base in blocks.items() for change in CASES[case][1](table, base)]
    result = table.apply(changes)
    assert result.outcome is Outcome.DONE, result.problem
    found = warehouse.rows(ROW)
    for case, base in blocks.items():
        held = [(key - base, value) for key, value, _ in found if base <= key < base + BLOCK]
        assert sorted(held) == CASES[case][2], case
    assert warehouse.tables() == ["_cdc_control", "_cdc_loads", "t"]
    assert warehouse.execute(f"SELECT * FROM {warehouse.schema}._cdc_loads") == []


def test_partial_images_chains_of_moves_and_truncates(table: HandMade, warehouse: Database) -> None:
    table.copy([row(1, "a", "one"), row(2, "b", "two"), row(3, "c", "three")])
    table.apply(
        [
            table.update(part(1, "A"), complete=False),
            table.move({"id": 2}, part(5, "B"), complete=False),
            table.move({"id": 5}, part(6, "BB"), complete=False),
            table.delete({"id": 3}),
            table.insert(row(3, "new", None)),
        ]
    )
    assert warehouse.rows(ROW) == [(1, "A", "one"), (3, "new", None), (6, "BB", "two")]
    table.apply([table.truncate(), table.insert(row(6, "", "")), table.insert(row(7, "z"))])
    assert warehouse.rows(ROW) == [(6, "", ""), (7, "z", "wide")]


def test_a_change_that_meets_no_row_applies_nothing(table: HandMade, warehouse: Database) -> None:
    table.copy([row(1, "a")])
    result = table.apply([table.update(part(2, "b"), complete=False), table.update(row(1, "z"))])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"
    assert warehouse.rows(ROW) == [(1, "a", "wide")]


def test_a_null_in_a_key_column_matches_a_null(spark: SparkSession, tmp_path: Path, warehouse: Database) -> None:
    integer = LogicalType(Kind.INT32)
    schema = TableSchema(
        "public.t", (Column("n", integer), Column("id", integer), Column("v", LogicalType(Kind.TEXT))), ("n", "id")
    )
    table = warehouse.table(spark, tmp_path, schema)
    table.copy([{"n": None, "id": 1, "v": "a"}, {"n": None, "id": 2, "v": "b"}, {"n": 3, "id": 1, "v": "c"}])
    table.apply([table.update({"n": None, "id": 1, "v": "A"}), table.delete({"n": None, "id": 2, "v": "b"})])
    assert warehouse.rows(("n", "id", "v")) == [(3, 1, "c"), (None, 1, "A")]


def test_a_soft_delete_flags_keeps_and_is_revived(soft: HandMade, warehouse: Database) -> None:
    soft.copy([row(1, "a"), row(2, "b"), row(3, "c")])
    soft.apply([soft.delete({"id": 1}), soft.update(part(2, "B"), complete=False), soft.delete({"id": 2})])
    flagged = [(*one[:3], bool(one[3])) for one in warehouse.rows((*ROW, "_cdc_deleted"))]
    assert flagged == [(1, "a", "wide", True), (2, "B", "wide", True), (3, "c", "wide", False)]
    result = soft.apply([soft.update(part(1, "x"), complete=False)])
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT031"


def test_an_insert_revives_and_a_truncate_flags(soft: HandMade, warehouse: Database) -> None:
    soft.copy([row(1, "a"), row(2, "b")])
    soft.apply([soft.delete({"id": 1})])
    soft.apply([soft.truncate(), soft.insert(row(1, "b", None))])
    flagged = [(*one[:3], bool(one[3])) for one in warehouse.rows((*ROW, "_cdc_deleted"))]
    assert flagged == [(1, "b", None, False), (2, "b", "wide", True)]


def test_ignored_deletes_and_truncates_leave_the_rows(spark: SparkSession, tmp_path: Path, warehouse: Database) -> None:
    table = warehouse.table(spark, tmp_path, SCHEMA, OnDelete.IGNORE)
    table.copy([row(1, "a"), row(2, "b")])
    table.apply([table.delete({"id": 1}), table.truncate(), table.insert(row(3, "c"))])
    assert warehouse.rows(ROW) == [(1, "a", "wide"), (2, "b", "wide"), (3, "c", "wide")]


def test_equal_rows_of_a_keyless_table_are_counted(spark: SparkSession, tmp_path: Path, warehouse: Database) -> None:
    table = warehouse.table(spark, tmp_path, keyless.SCHEMA)
    one = keyless.row
    held = [one(1, "a"), one(1, "a"), one(2, None, 1.5), one(2, None, 1.5), one(2, None, 1.6), one(3, ""), one(3, None)]
    table.copy(held)
    table.apply(
        [
            table.delete(one(1, "a")),
            table.delete(one(2, None, 1.5)),
            table.update(one(3, "x"), before=one(3, None)),
            table.insert(one(4, "n")),
            table.insert(one(4, "n")),
        ]
    )
    assert warehouse.rows(("c", "v")) == [(1, "a"), (2, None), (2, None), (3, ""), (3, "x"), (4, "n"), (4, "n")]
    assert sorted(number for case, number in warehouse.rows(("c", "f")) if case == 2) == [1.5, 1.6]
    table.apply([table.truncate(), table.insert(one(5, "after")), table.insert(one(5, "after"))])
    assert warehouse.rows(("c", "v")) == [(5, "after"), (5, "after")]


def test_records_delivered_twice_change_nothing(table: HandMade, warehouse: Database) -> None:
    table.copy([row(1, "a")])
    records = [table.update(row(1, "b")), *moved(table, 1, 2, "c")]
    table.apply([*records, *records])
    assert warehouse.rows(ROW) == [(2, "c", "wide")]


def test_added_columns_get_the_value_that_older_rows_hold(table: HandMade, warehouse: Database) -> None:
    table.copy([row(1, "a"), row(2, "b")])
    added = (
        Column("n", LogicalType(Kind.INT32), initial="7"),
        Column("d", LogicalType(Kind.TEXT)),
    )
    schema = TableSchema("public.t", (*SCHEMA.columns, *added), ("id",))
    table.apply([table.alter(schema), table.update({**row(1, "A"), "n": 8, "d": "x"})])
    assert warehouse.rows((*ROW, "n", "d")) == [(1, "A", "wide", 8, "x"), (2, "b", "wide", 7, None)]
    assert table.apply([table.insert({**row(3, "c"), "n": 9, "d": None})]).outcome is Outcome.DONE
