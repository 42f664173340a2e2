"""Random histories of tables without key: every version of the copy holds each row as often as the source did."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.spark.history_runs import run_some_histories

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("on_delete", [OnDelete.HARD, pytest.param(OnDelete.IGNORE, marks=pytest.mark.nightly)])
def test_every_version_of_the_copy_is_the_source_between_two_transactions(
    spark: SparkSession, tmp_path: Path, on_delete: OnDelete
) -> None:
    run_some_histories(spark, tmp_path, False, on_delete)
