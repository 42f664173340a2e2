"""Every test of this folder that takes ``kit`` or ``table`` runs on every target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.contract.kits import KITS, TargetKit

IN_SPARK = "delta in Spark"
IN_EVERY_RUN = frozenset({"test_merge_keyed", "test_merge_schemas", "test_types"})
"""These modules run the Spark path of large Delta batches in every run, all modules in the nightly one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        spec = getattr(item, "callspec", None)
        if spec and spec.params.get("kit") == IN_SPARK and item.path.stem not in IN_EVERY_RUN:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit
