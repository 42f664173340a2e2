"""Random histories of a source that delivers in any order: the copy equals the source in the end, for any cut of the
log."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.model import seeds
from tests.spark.history_runs import run_shuffled_histories

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("on_delete", OnDelete)
def test_the_copy_equals_the_source_after_any_order_repetition_and_cut(
    spark: SparkSession, tmp_path: Path, on_delete: OnDelete
) -> None:
    run_shuffled_histories(spark, tmp_path, on_delete, seeds.seed(), seeds.histories(120))
