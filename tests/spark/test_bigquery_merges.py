"""What a merge into BigQuery's stand-in leaves in its result and in its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.bigquery.jobs import Jobs
from tests.spark.contract.bigquery_kit import bigquery_kit, client
from tests.spark.scripted_table import ScriptedTable

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)


def test_a_merge_reports_what_its_jobs_are_billed_and_labels_them(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []
    run = Jobs._run

    def recorded(jobs: Jobs, *given: Any) -> Any:
        job = run(jobs, *given)
        ran.append((job.job_id, job.location))
        return job

    with bigquery_kit(spark, tmp_path, request.getfixturevalue) as kit:
        table = ScriptedTable(kit.session, tmp_path, SCHEMA, target=kit.target, secrets=kit.secrets)
        table.copy([{"id": 1, "v": "a"}])
        table.land([table.update({"id": 1, "v": "b"}), table.insert({"id": 2, "v": "c"})])
        staged, _ = table.staged()
        monkeypatch.setattr(Jobs, "_run", recorded)
        result = table.merged(staged)
        monkeypatch.undo()
        with client(kit.server) as connection:
            jobs = [connection.get_job(job, location=location) for job, location in ran]
    assert result.outcome is Outcome.DONE and jobs
    assert result.cost["bytes_billed"] == sum(getattr(job, "total_bytes_billed", None) or 0 for job in jobs) > 0
    assert {job.labels["cdc_replicator"] for job in jobs} == {"hand"}
    labels = {job.labels["cdc_purpose"]: job.labels.get("cdc_window") for job in jobs}
    assert labels == {"stage": None, "load": None, "bounds": None, "commit": "1"}
