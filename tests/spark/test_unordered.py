"""Sources that deliver out of order: the newest change of a key wins, whenever it arrives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.carry_over import NOTHING
from airflow_cdc_provider.core.spec.definition import OnBadRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.spark.contract.control_records import problem
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT), Column("v", TEXT)), ("id",), Regime.UNORDERED)


def row(key: int | None, value: str) -> Row:
    return {"id": key, "v": value}


def carried(table: ScriptedTable) -> dict[str, int]:
    control = table.target_state().control
    assert control is not None
    return control.carry.counts


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> ScriptedTable:
    made = ScriptedTable(spark, tmp_path, SCHEMA, on_bad_record=OnBadRecord.QUARANTINE)
    made.copy([row(0, "a")])
    return made


def test_an_older_record_that_comes_late_changes_nothing(table: ScriptedTable) -> None:
    older, newer = table.update(row(0, "older")), table.update(row(0, "newer"))
    born, gone = table.insert(row(1, "born")), table.delete(row(1, "born"))
    table.apply([newer, gone])
    assert carried(table) == {"tombstone": 1}
    table.apply([older, born])
    assert table.rows() == [(0, "newer")]
    assert carried(table) == {"tombstone": 1}


def test_e18_two_different_changes_of_a_row_at_one_position_block_the_table(table: ScriptedTable) -> None:
    one, gone = table.update(row(0, "b")), table.delete(row(1, "x"))
    table.apply([one, replace(one, position="again"), gone])
    table.apply([gone])
    assert (table.rows(), carried(table)) == ([(0, "b")], {"tombstone": 1}), "they came twice"
    one = table.update(row(0, "c"))
    result = table.apply([one, replace(one, after=table.update(row(0, "d")).after)])
    assert (result.outcome, problem(result)) == (Outcome.BLOCKED, "EVT012")


def test_a_row_that_comes_again_replaces_its_tombstone(table: ScriptedTable) -> None:
    table.apply([table.delete(row(0, "a"))])
    assert (table.rows(), carried(table)) == ([], {"tombstone": 1})
    table.apply([table.insert(row(0, "again"))])
    assert (table.rows(), carried(table)) == ([(0, "again")], {})


def test_a_barrier_retires_tombstones_and_records_that_arrive_after_it_are_in_quarantine(table: ScriptedTable) -> None:
    born, late = table.insert(row(1, "born")), table.insert(row(2, "late"))
    older = table.update(row(0, "older"))
    table.apply([table.update(row(0, "newer")), table.delete(row(1, "born")), table.delete(row(9, "?"))])
    assert carried(table) == {"tombstone": 2}
    table.apply([table.record("barrier")])
    assert carried(table) == {}
    table.apply([born, late, older, table.insert(row(3, "new"))])
    assert table.rows() == [(0, "newer"), (3, "new")]
    assert carried(table) == {"quarantined": 2}
    table.apply([table.insert(row(2, "newest"))])
    assert table.rows() == [(0, "newer"), (2, "newest"), (3, "new")]
    assert carried(table) == {"quarantined": 1}, "a newer change of a late key resolves it"


def test_a_carry_over_that_changed_on_disk_stops_the_table(table: ScriptedTable) -> None:
    table.apply([table.delete(row(0, "a"))])
    control = table.target_state().control
    assert control is not None
    table.log.store.write(control.carry.files[0].path, b"changed on disk")
    result = table.apply([table.insert(row(0, "again"))])
    assert (result.outcome, result.problem and result.problem.code) == (Outcome.BLOCKED, "STG005")


@pytest.mark.parametrize("what", ["truncate", "part"])
def test_a_record_that_needs_an_order_stops_the_table(table: ScriptedTable, what: str) -> None:
    record = table.truncate() if what == "truncate" else table.update({"id": 0}, complete=False)
    result = table.apply([record])
    assert (result.outcome, result.problem and result.problem.code) == (Outcome.BLOCKED, "TGT037")
    assert table.rows() == [(0, "a")]


def test_a_repair_skips_keys_that_wait_in_the_carry_over(table: ScriptedTable) -> None:
    table.apply([table.insert(row(1, "b")), table.insert(row(2, "c")), table.delete(row(0, "a"))])
    before = carried(table)
    table.spark.sql(f"UPDATE delta.`{table.definition.target.location}/t` SET v = 'damaged'")
    job, _ = table.staged(repair=(1, 1))
    table.merged(job)
    assert table.rows() == [(1, "b"), (2, "c")]
    assert carried(table) == before == {"tombstone": 1}


def test_a_table_without_carry_over_has_none(table: ScriptedTable) -> None:
    control = table.target_state().control
    assert control is not None
    assert control.carry == NOTHING
