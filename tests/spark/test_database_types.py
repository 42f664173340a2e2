"""Values that a database cannot represent: kept in another form, or refused with a message."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.databases import Database
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

KEY = Column("id", LogicalType(Kind.INT32), nullable=False)
FLOATS = TableSchema("public.t", (KEY, Column("f", LogicalType(Kind.FLOAT64))), ("id",))


def test_nan_and_infinity_are_kept_or_refused_with_a_message(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    table = warehouse.table(spark, tmp_path, FLOATS)
    table.copy([{"id": 1, "f": 1.5}])
    result = table.apply([table.insert({"id": 2, "f": "NaN"}), table.insert({"id": 3, "f": "-Infinity"})])
    if warehouse.kind == "postgres":
        assert [str(value) for _, value in warehouse.rows(("id", "f"))] == ["1.5", "nan", "-inf"]
        return
    assert result.outcome is Outcome.BLOCKED and result.problem is not None
    assert result.problem.code == "QUA001" and "column f" in result.problem.what and "NaN" not in str(result.problem)
    assert warehouse.rows(("id", "f")) == [(1, 1.5)]


@pytest.mark.parametrize("warehouse", ["mysql"], indirect=True)
def test_floats_as_text_keep_values_that_mysql_has_no_number_for(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    options = {"schema": warehouse.schema, "floats": "text"}
    target = Target("mysql", connection="warehouse", options=options)
    table = ScriptedTable(spark, tmp_path, FLOATS, target=target, secrets=Secrets(target=warehouse.connection))
    table.copy([{"id": 1, "f": -0.0}])
    table.apply([table.insert({"id": 2, "f": "NaN"}), table.insert({"id": 3, "f": "-Infinity"})])
    back = [value for _, value in table.rows()]
    assert math.copysign(1, back[0]) == -1 and math.isnan(back[1]) and back[2] == -math.inf


def test_a_text_that_is_too_long_for_a_key_blocks_the_table_without_showing_it(
    spark: SparkSession, tmp_path: Path, warehouse: Database
) -> None:
    schema = TableSchema("public.t", (Column("k", LogicalType(Kind.TEXT), nullable=False),), ("k",))
    table = warehouse.table(spark, tmp_path, schema)
    table.copy([{"k": "a"}, {"k": "a "}, {"k": "A"}])
    assert sorted(warehouse.rows(("k",))) == [("A",), ("a",), ("a ",)]
    result = table.apply([table.insert({"k": "secret " * 2_000})])
    if result.outcome is not Outcome.DONE:
        assert result.problem is not None and "secret" not in str(result.problem)
        assert result.problem.code == ("QUA001" if warehouse.kind == "mysql" else "TGT063")
