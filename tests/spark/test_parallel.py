"""Splits are processed by threads of the driver or by Spark's tasks, in their order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.runtime.parallel import RunSplits, run_in_driver, run_in_tasks
from tests.spark.scripted_table import ScriptedTable

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32), nullable=False),), ("id",))


@pytest.mark.jvm
@pytest.mark.parametrize(("run", "by_driver"), [(run_in_driver, True), (run_in_tasks, False)])
def test_results_have_the_order_of_the_splits(
    spark: SparkSession, tmp_path: Path, run: RunSplits, by_driver: bool
) -> None:
    job = ScriptedTable(spark, tmp_path, SCHEMA).job(StepKind.SNAPSHOT, ())
    assert run(job, abs, [-3, 2, -1]) == [3, 2, 1]
    processes = set(run(job, eval, ["__import__('os').getpid()"] * 3))
    assert (processes == {os.getpid()}) is by_driver
