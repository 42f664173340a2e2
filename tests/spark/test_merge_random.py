"""Random histories of keyed tables: every version of the copy is a state of the source, however the log is cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.definition import OnDelete
from tests.spark.random_stories import play_one_of

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("ways", [[OnDelete.HARD], [OnDelete.SOFT, OnDelete.IGNORE]], ids="-".join)
def test_every_version_of_the_copy_is_the_source_between_two_transactions(
    spark: SparkSession, tmp_path: Path, ways: Sequence[OnDelete]
) -> None:
    play_one_of(spark, tmp_path, True, ways)
