"""A batch never skips what the stream does not contain: it ends before the hole, and only a copy passes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.change_log import Hole
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)
OTHERS = Hole("overflow", "public.other", "")


def row(key: int, value: str = "a") -> Row:
    return {"id": key, "v": value}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> ScriptedTable:
    table = ScriptedTable(spark, tmp_path, SCHEMA)
    table.copy([row(1)])
    return table


def hole(table: ScriptedTable, kind: str, ids: tuple[str, ...] = ()) -> Hole:
    """A hole after all changes landed so far."""
    return Hole(kind, SCHEMA.table, f"{table.order + 1:08x}", ids)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "ids"), [("expired", ()), ("overflow", ()), ("gap", ()), ("gap", ("[1]",))])
def test_a_batch_ends_before_a_hole_and_continues_after_the_next_copy(
    table: ScriptedTable, kind: str, ids: tuple[str, ...]
) -> None:
    table.land([table.insert(row(2))], holes=[OTHERS])
    table.land([table.insert(row(3))], holes=[hole(table, kind, ids)])
    result = table.apply([table.insert(row(4))])
    assert (result.outcome, result.window) == (Outcome.DONE, 1)
    assert [key for key, _ in table.rows()] == [1, 2]
    _, result = table.staged()
    assert (result.outcome, result.window) == (Outcome.UNCHANGED, 1)
    table.copy([row(key) for key in (1, 2, 3, 4)])
    assert table.apply([table.insert(row(5))]).window == 4
    assert [key for key, _ in table.rows()] == [1, 2, 3, 4, 5]


def test_a_window_that_did_not_capture_the_table_is_not_skipped(table: ScriptedTable) -> None:
    table.land(listed=False)
    result = table.apply([table.insert(row(2))])
    assert (result.outcome, result.window) == (Outcome.UNCHANGED, 0)
    assert [key for key, _ in table.rows()] == [1]


def test_a_hole_that_the_copy_has_filled_stops_no_batch(table: ScriptedTable) -> None:
    """The window was cut during the copy: it begins before the position of the copy."""
    filled = hole(table, "overflow")
    early = table.insert(row(2))
    table.copy([row(1), row(2), row(3)])
    table.land([early, table.insert(row(4))], holes=[filled])
    assert table.apply().window == 2
    assert [key for key, _ in table.rows()] == [1, 2, 3, 4]


def test_a_repair_skips_windows_before_the_table_was_captured(table: ScriptedTable, spark: SparkSession) -> None:
    table.land(listed=False)
    table.copy([row(1)])
    table.apply([table.insert(row(2))])
    spark.sql(f"DELETE FROM delta.`{table.definition.target.location}/t` WHERE id = 2")
    job, _ = table.staged(repair=(1, 2))
    assert table.merged(job).outcome is Outcome.DONE
    assert [key for key, _ in table.rows()] == [1, 2]


def test_a_repair_does_not_restore_rows_that_were_deleted_in_a_hole(table: ScriptedTable) -> None:
    """The first copy of a feed is empty and older than every record, so its floor says nothing about its rows."""
    table.apply([table.insert(row(2)), table.insert(row(3))])
    table.land([table.update(row(3, "late"))], holes=[hole(table, "expired")])
    behind, table.order = table.order, 0
    table.copy([row(1)])
    table.order = behind
    table.apply([table.insert(row(3, "anew"))])
    job, result = table.staged(repair=(1, 2))
    assert result.outcome is Outcome.UNCHANGED
    job, _ = table.staged(repair=(1, 3))
    table.merged(job)
    assert table.rows() == [(1, "a"), (3, "anew")]
