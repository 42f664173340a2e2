"""Random histories of whole rows: batches that the driver folds and merges end in the rows of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from spark_jobs.engines.spark import SparkEngine
from tests.model import seeds
from tests.spark.history_runs import run_whole_row_histories

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("on_delete", [OnDelete.HARD, OnDelete.IGNORE])
def test_batches_of_whole_rows_need_no_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_delete: OnDelete
) -> None:
    monkeypatch.setattr(SparkEngine, "fold", left_to_spark)
    monkeypatch.setattr(SparkEngine, "merge", left_to_spark)
    run_whole_row_histories(spark, tmp_path, on_delete, seeds.seed(), seeds.histories(120))


def left_to_spark(*_: object) -> None:
    raise AssertionError("left to Spark")
