"""The target of docs/guides/write-your-own-target.md, installed as a package and run as the page says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.loader import load_text
from tests.spark.pipelines.guide_pages import SOURCE_PAGE, TARGET_PAGE, install
from tests.spark.pipelines.own_source.test_own_source import JournalPipeline

pytestmark = pytest.mark.jvm


class SqlitePipeline(JournalPipeline):
    @property
    def rows(self) -> dict[int, Any]:
        with sqlite3.connect(self.folder / "orders.db") as connection:
            rows = connection.execute("SELECT id, body FROM journal_orders").fetchall()
        return {int(key): json.loads(body) for key, body in rows}


@pytest.fixture
def orders(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlitePipeline]:
    with install(tmp_path / "site", monkeypatch, SOURCE_PAGE, TARGET_PAGE):
        text = TARGET_PAGE.blocks["yaml"].replace("/data", str(tmp_path))
        (tmp_path / "journals").mkdir()
        yield SqlitePipeline(tmp_path, spark, load_text(text.encode(), "orders.yaml").definition)


def test_the_target_of_the_guide_keeps_a_copy(orders: SqlitePipeline) -> None:
    orders.write({"id": 7, "body": {"status": "paid"}}, {"id": 8, "body": {}})
    orders.run_until_idle()
    assert orders.rows == {7: {"status": "paid"}, 8: {}}
    orders.write({"id": 7, "body": {"status": "shipped"}}, {"id": 8}, {"id": 9, "body": {"status": "new"}})
    orders.run_until_idle()
    assert orders.rows == {7: {"status": "shipped"}, 9: {"status": "new"}}


def test_it_is_paused_and_copied_again(orders: SqlitePipeline) -> None:
    orders.write({"id": 7, "body": {"status": "paid"}})
    orders.run_until_idle()
    orders.record_command(CommandKind.PAUSE, "journal.orders")
    orders.write({"id": 7})
    orders.run()
    assert orders.rows == {7: {"status": "paid"}}, "a paused table takes no commit"
    orders.record_command(CommandKind.RESUME, "journal.orders")
    orders.run_until_idle()
    assert orders.rows == {}
    orders.write({"id": 1, "body": {}})
    orders.record_command(CommandKind.RESYNC, "journal.orders")
    orders.run_until_idle()
    assert orders.rows == {1: {}}
