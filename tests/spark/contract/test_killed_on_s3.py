"""Drivers that are killed around the commit to an Iceberg table in a bucket: a retry applies the batch once."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.contract.control_records import control
from tests.spark.contract.drivers import merge_step
from tests.spark.contract.iceberg_rest_kit import iceberg_on_s3_kit
from tests.spark.contract.kit_table import KitTable
from tests.spark.replicator import spark_submit

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

KEYLESS = TableSchema("public.t", (Column("id", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT))))


@pytest.mark.parametrize(
    ("point", "commits"),
    [
        ("merge.before_commit", False),
        ("publish.before", False),
        ("publish.after", True),
        ("merge.after_commit", True),
    ],
)
def test_a_batch_of_a_killed_driver_applies_once(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, point: str, commits: bool
) -> None:
    """The table has no key: there is no row guard."""
    with iceberg_on_s3_kit(spark, tmp_path, request.getfixturevalue) as kit:
        table = KitTable(kit, tmp_path, KEYLESS)
        table.copy([{"id": 1, "v": "a"}, {"id": 1, "v": "a"}])
        table.land([table.insert({"id": 2, "v": "b"}), table.delete({"id": 1, "v": "a"})])
        job, _ = table.staged()
        token = tmp_path / "token"
        token.touch()
        step = merge_step(kit, table, tmp_path, job.step.attempt)
        armed = {ARMED: f"{point}=kill9", TOKEN: str(token)}
        url = table.log.store.url(f"{step.folder}/step.json")
        driver = spark_submit(step, url, tmp_path, kit.jars, environment=armed)
        output, _ = driver.communicate()
        assert driver.returncode != 0 and not token.exists(), output
        assert control(table).window == (1 if commits else 0)
        assert table.merged(job).outcome is (Outcome.FENCED if commits else Outcome.DONE)
        assert table.rows() == [(1, "a"), (2, "b")] and control(table).window == 1
