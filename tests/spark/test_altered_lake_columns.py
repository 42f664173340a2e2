"""Columns and rules that somebody gave to a copy in a lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome, TableResult
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import KITS, TargetKit
from tests.spark.scripted_table import Row

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t",
    (
        Column("id", LogicalType(Kind.INT32), nullable=False),
        Column("price", LogicalType(Kind.DECIMAL, 10, 2)),
        Column("v", LogicalType(Kind.TEXT)),
        Column("at", LogicalType(Kind.TIMESTAMP)),
        Column("zoned", LogicalType(Kind.TIMESTAMPTZ)),
        Column("small", LogicalType(Kind.INT16)),
        Column("raw", LogicalType(Kind.BYTES)),
        Column("f", LogicalType(Kind.FLOAT32)),
        Column("uid", LogicalType(Kind.UUID)),
        Column("day", LogicalType(Kind.DATE)),
        Column("yes", LogicalType(Kind.BOOLEAN)),
    ),
    ("id",),
)
DELTA, ICEBERG = "delta", "iceberg"
MAPPED = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"


def row(price: str, value: str = "a") -> Row:
    return {**dict.fromkeys(SCHEMA.names), "id": 1, "price": price, "v": value}


@pytest.fixture
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


@pytest.fixture
def table(kit: TargetKit, tmp_path: Path) -> KitTable:
    table = KitTable(kit, tmp_path, SCHEMA)
    table.copy([row("1.25")])
    assert table.target_state().unfit is None
    return table


def merged(table: KitTable, new: Row) -> TableResult:
    table.land([table.update(new)])
    return table.merged(table.staged()[0])


NARROWED = {
    DELTA: (
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * EXCEPT (price), CAST(price AS decimal(10,1)) AS price "
        "FROM {t}",
    ),
    ICEBERG: ("ALTER TABLE {t} DROP COLUMN price", "ALTER TABLE {t} ADD COLUMN price decimal(10,1)"),
}


@pytest.mark.parametrize(
    ("kit", "statements", "found"),
    [
        (DELTA, (MAPPED, "ALTER TABLE {t} RENAME COLUMN v TO w"), "column v is missing"),
        (DELTA, (MAPPED, "ALTER TABLE {t} DROP COLUMN _cdc_order"), "column _cdc_order is missing"),
        (ICEBERG, NARROWED[ICEBERG], "column price is decimal(10,1) instead of decimal(10,2)"),
        (ICEBERG, ("ALTER TABLE {t} RENAME COLUMN v TO w",), "column v is missing"),
        (ICEBERG, ("ALTER TABLE {t} DROP COLUMN v",), "column v is missing"),
    ],
    indirect=["kit"],
)
def test_a_column_that_does_not_keep_the_values_stops_the_table_until_it_is_copied_again(
    table: KitTable, kit: TargetKit, statements: tuple[str, ...], found: str
) -> None:
    for statement in statements:
        kit.write(statement)
    unfit = table.target_state().unfit
    assert unfit is not None and unfit.copy_helps and (unfit.problem.code, unfit.problem.found) == ("TGT098", found)
    result = merged(table, row("1.25", "b"))
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT098"
    table.copy([row("1.25")])
    assert table.target_state().unfit is None
    assert merged(table, row("1.75", "b")).outcome is Outcome.DONE


@pytest.mark.parametrize("kit", [DELTA], indirect=True)
def test_a_narrower_column_of_a_replaced_table_is_noticed(table: KitTable, kit: TargetKit) -> None:
    """Delta keeps the tokens of a table that CREATE OR REPLACE replaces."""
    kit.write(NARROWED[DELTA][0])
    unfit = table.target_state().unfit
    assert unfit is not None and "column price is decimal(10,1)" in unfit.problem.found
    assert merged(table, row("1.25", "b")).outcome is Outcome.BLOCKED


@pytest.mark.parametrize("kit", [ICEBERG], indirect=True)
def test_a_column_that_is_altered_during_a_merge_is_not_published(
    table: KitTable, kit: TargetKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alter(name: str) -> None:
        if name == "merge.before_commit":
            kit.write("ALTER TABLE {t} DROP COLUMN v")

    monkeypatch.setattr("spark_jobs.writers.iceberg.failpoint", alter)
    result = merged(table, row("1.75", "b"))
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT098"
    assert [str(price) for (price,) in kit.rows("price")] == ["1.25"]


@pytest.mark.parametrize("kit", [ICEBERG], indirect=True)
def test_a_wider_column_is_left_alone(table: KitTable, kit: TargetKit) -> None:
    kit.write("ALTER TABLE {t} ALTER COLUMN price TYPE decimal(12,2)")
    kit.write("ALTER TABLE {t} ALTER COLUMN small TYPE bigint")
    assert table.target_state().unfit is None
    assert merged(table, row("1.75", "b")).outcome is Outcome.DONE


@pytest.mark.parametrize("kit", [DELTA], indirect=True)
@pytest.mark.parametrize(
    ("statement", "new", "found"),
    [
        ("ADD CONSTRAINT cheap CHECK (price < 5)", row("1234.56"), "CHECK constraint cheap"),
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", row("1.75"), "only allow appends"),
    ],
)
def test_a_rule_of_a_table_that_refuses_a_change_blocks_it(
    table: KitTable, kit: TargetKit, statement: str, new: Row, found: str
) -> None:
    kit.write(f"ALTER TABLE {{t}} {statement}")
    result = merged(table, new)
    assert result.outcome is Outcome.BLOCKED and result.problem is not None and result.problem.code == "TGT091"
    assert found in result.problem.found and "1234" not in result.problem.found and "ALTER TABLE" in result.problem.do


@pytest.mark.parametrize("kit", [DELTA], indirect=True)
def test_a_constraint_that_holds_does_not_stop_a_table(table: KitTable, kit: TargetKit) -> None:
    kit.write("ALTER TABLE {t} ADD CONSTRAINT cheap CHECK (price < 5)")
    assert table.target_state().unfit is None
    assert merged(table, row("4.75")).outcome is Outcome.DONE
