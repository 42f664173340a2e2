"""Copies of Snowflake get the name of their table after their commit, in a statement of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.snowflake import server
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.once import once_at
from tests.spark.contract.snowflake_kit import SnowflakeKit, snowflake_kit
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)


@pytest.fixture
def kit(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SnowflakeKit]:
    with snowflake_kit(spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


@pytest.fixture
def table(kit: SnowflakeKit, tmp_path: Path) -> ScriptedTable:
    table = ScriptedTable(kit.session, tmp_path, SCHEMA, target=kit.target, secrets=kit.secrets)
    table.copy([{"id": 1, "v": "a"}])
    return table


def test_a_fence_is_not_lost_to_a_copy_that_stood_still_before_its_swap(
    table: ScriptedTable, kit: SnowflakeKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[ControlRecord] = []
    fenced = once_at("copy.in_swap", lambda: raised.append(fence(table, TableState.PAUSED)))
    monkeypatch.setattr(server, "failpoint", fenced)
    with pytest.raises(Fenced):
        table.copy([{"id": 2, "v": "b"}])
    assert raised == [control(table)] and kit.rows("id", "v") == [(1, "a")]
