"""Renamed tables whose statements the topic has lost since, and those that were renamed before their first copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.pipelines.feeds.renamed_feed import RenamedFeed, copied_feed
from tests.spark.pipelines.schema_changes.reported.feeds import SimulatedTable

pytestmark = [pytest.mark.jvm]


@pytest.fixture
def feed(tmp_path: Path, spark: SparkSession) -> RenamedFeed:
    """Renamed once, and followed."""
    made = copied_feed(tmp_path, spark)
    made.rename()
    made.pipeline.run_until_idle()
    return made


@pytest.mark.nightly
def test_a_copy_has_found_its_table_once_and_for_all(feed: RenamedFeed) -> None:
    """What the topic still has is a later statement. Another table with the former name is not that of the copy."""
    floor = feed.floor
    shutil.rmtree(feed.kit.folder / "events" / "p")
    feed.kit.state(SimulatedTable("other"), "CREATE", "CREATE TABLE other (…)")
    feed.put(2, "later")
    feed.pipeline.run_until_idle()
    feed.require_equal()
    other = SimulatedTable("t")
    feed.kit.created(other)
    feed.kit.put(other, 77, v="of another table")
    feed.put(3, "last")
    feed.rename()
    feed.pipeline.run_until_idle()
    feed.require_equal()
    assert feed.floor == floor


def test_a_first_copy_has_the_rows_from_under_all_names(tmp_path: Path, spark: SparkSession) -> None:
    """Under the present name and with the present columns."""
    feed = RenamedFeed(tmp_path, spark)
    feed.rename()
    feed.rename()
    feed.copy = f"d.{feed.table.name}"
    feed.pipeline.run_until_idle()
    feed.require_equal()
    feed.rename()
    feed.pipeline.run_until_idle()
    feed.require_equal()
