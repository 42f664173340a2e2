"""The source of docs/guides/write-your-own-source.md, installed as a package and run as the page says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.loader import load_text
from tests.spark.pipelines.guide_pages import SOURCE_PAGE, install
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = pytest.mark.jvm


@dataclass
class JournalPipeline(Pipeline):
    @property
    def secrets(self) -> Secrets:
        return Secrets()

    def write(self, *changes: dict[str, Any]) -> None:
        with (self.folder / "journals" / "orders.jsonl").open("a") as file:
            file.writelines(json.dumps(change) + "\n" for change in changes)

    @property
    def rows(self) -> dict[int, Any]:
        return {key: json.loads(row["body"]) for key, row in self.copied_rows("journal.orders", "id").items()}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with install(tmp_path / "site", monkeypatch, SOURCE_PAGE):
        yield


@pytest.mark.usefixtures("installed")
def test_the_source_of_the_guide_keeps_a_copy(tmp_path: Path, spark: SparkSession) -> None:
    text = SOURCE_PAGE.blocks["yaml"].replace("/data", str(tmp_path))
    journals = JournalPipeline(tmp_path, spark, load_text(text.encode(), "orders.yaml").definition)
    (tmp_path / "journals").mkdir()
    assert journals.replicator().source.check([]) == []
    journals.write({"id": 7, "body": {"status": "paid"}}, {"id": 8, "body": {}})
    journals.run_until_idle()
    assert journals.rows == {7: {"status": "paid"}, 8: {}}
    journals.write({"id": 7, "body": {"status": "shipped"}}, {"id": 8}, {"id": 9, "body": {"status": "new"}})
    journals.run_until_idle()
    assert journals.rows == {7: {"status": "shipped"}, 9: {"status": "new"}}
    journals.write({"id": 7})
    journals.run_until_idle()
    assert journals.rows == {9: {"status": "new"}}
