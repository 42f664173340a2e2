"""Tables of a target are moved as the operations guide describes it. The cursor is in the table and moves with it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.databases import new_schema
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm


def with_a_copy(table: ScriptedTable) -> KeyedChanges:
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.update(1, "b", "w")])
    fence(table, TableState.PAUSED)
    return changes


def test_a_delta_table_continues_in_a_copy_of_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    table = ScriptedTable(spark, tmp_path, KEYED)
    changes = with_a_copy(table)
    shutil.copytree(tmp_path / "lake", tmp_path / "new")
    shutil.rmtree(tmp_path / "lake")
    table.definition = replace(table.definition, target=replace(table.definition.target, location=f"{tmp_path}/new"))
    assert control(table).state.name is TableState.PAUSED
    fence(table, TableState.REPLICATING)
    table.apply([changes.update(1, "c", "w"), changes.insert(2, "d", "w")])
    assert table.rows() == [(1, "c", "w"), (2, "d", "w")]
    assert not (tmp_path / "lake").exists()


@pytest.mark.server
def test_a_postgresql_table_continues_in_a_schema_of_another_name(
    spark: SparkSession, tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    with new_schema("postgres", postgres, "before_move") as database:
        table = database.table(spark, tmp_path, KEYED, OnDelete.HARD)
        changes = with_a_copy(table)
        database.execute("ALTER SCHEMA before_move RENAME TO after_move", "CREATE SCHEMA before_move")
        moved = replace(database, schema="after_move")
        table.definition = replace(table.definition, target=moved.target)
        assert control(table).state.name is TableState.PAUSED
        fence(table, TableState.REPLICATING)
        table.apply([changes.update(1, "c", "w"), changes.insert(2, "d", "w")])
        assert moved.rows(("id", "v")) == [(1, "c"), (2, "d")]
        database.execute("DROP SCHEMA after_move CASCADE")
