"""The source of docs/guides/write-your-own-source.md, installed as a package and run as the page says."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.loader import types as loader_types
from tests.spark.roads.scene import Scene

pytestmark = pytest.mark.jvm

PAGE = (Path(__file__).parents[4] / "docs" / "guides" / "write-your-own-source.md").read_text()
BLOCKS = dict(re.findall(r"^```(toml|yaml|python)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@dataclass
class Journals(Scene):
    @property
    def secrets(self) -> Secrets:
        return Secrets()

    def write(self, *changes: dict[str, Any]) -> None:
        with (self.folder / "journals" / "orders.jsonl").open("a") as file:
            file.writelines(json.dumps(change) + "\n" for change in changes)

    @property
    def rows(self) -> dict[int, Any]:
        return {key: json.loads(row["body"]) for key, row in self.held("journal.orders", "id").items()}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path / "site"
    info = site / "journal_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: journal-source\nVersion: 1.0\n")
    points = re.sub(r'^\[project\.entry-points\."(.*)"\]$', r"[\1]", BLOCKS["toml"], flags=re.MULTILINE)
    (info / "entry_points.txt").write_text(points.replace('"', ""))
    (site / "journal_source.py").write_text(BLOCKS["python"])
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    loader_types._outsiders.cache_clear()
    yield
    loader_types._outsiders.cache_clear()
    sys.modules.pop("journal_source", None)


@pytest.mark.usefixtures("installed")
def test_the_source_of_the_guide_keeps_a_copy(tmp_path: Path, spark: SparkSession) -> None:
    text = BLOCKS["yaml"].replace("/data", str(tmp_path))
    journals = Journals(tmp_path, spark, load_text(text.encode(), "orders.yaml").definition)
    (tmp_path / "journals").mkdir()
    assert journals.replicator().source.check([]) == []
    journals.write({"id": 7, "body": {"status": "paid"}}, {"id": 8, "body": {}})
    journals.settle()
    assert journals.rows == {7: {"status": "paid"}, 8: {}}
    journals.write({"id": 7, "body": {"status": "shipped"}}, {"id": 8}, {"id": 9, "body": {"status": "new"}})
    journals.settle()
    assert journals.rows == {7: {"status": "shipped"}, 9: {"status": "new"}}
    journals.write({"id": 7})
    journals.settle()
    assert journals.rows == {9: {"status": "new"}}
