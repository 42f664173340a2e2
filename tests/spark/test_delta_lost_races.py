"""A commit of Spark that conflicts with another one, under each name that Delta has for it: fenced if another
attempt owns the table, else retried."""

from __future__ import annotations

from pathlib import Path

import delta.exceptions
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from spark_jobs.writers import delta as writer
from tests.spark.contract.control_records import fence, problem
from tests.spark.contract.delta_kit import DeltaKit
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))


@pytest.fixture
def kit(spark: SparkSession, tmp_path: Path) -> DeltaKit:
    kit = DeltaKit(spark, tmp_path)
    kit.engine = EngineMode.SPARK
    return kit


@pytest.fixture
def table(kit: DeltaKit, tmp_path: Path) -> ScriptedTable:
    table = KitTable(kit, tmp_path, SCHEMA)
    table.copy([{"id": 1, "v": "a"}])
    table.land([table.insert({"id": 2, "v": "b"})])
    return table


def test_every_conflict_of_delta_is_a_lost_race() -> None:
    assert {one.__name__ for one in writer.LOST_RACE} == set(delta.exceptions.__all__)


def test_a_merge_that_lost_to_a_fence_is_fenced(
    table: ScriptedTable, kit: DeltaKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        fence(table)
        raise delta.exceptions.ConcurrentTransactionException("another commit with our transaction identifier")

    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, lose)
    result = table.merged(staged)
    assert (result.outcome, problem(result)) == (Outcome.FENCED, "TGT030")
    assert table.rows() == [(1, "a")]


def test_a_merge_that_lost_to_a_foreign_commit_is_retried(
    table: ScriptedTable, kit: DeltaKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        kit.compact()
        raise delta.exceptions.ConcurrentDeleteReadException("rows that were read are gone")

    staged, _ = table.staged()
    kit.meanwhile(monkeypatch, lose)
    assert table.merged(staged).outcome is Outcome.DONE
    assert table.rows() == [(1, "a"), (2, "b")]
