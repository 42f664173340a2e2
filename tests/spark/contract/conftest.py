"""Every test of this folder that takes ``kit`` or ``table`` runs on every target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.contract.kits import KITS, TargetKit


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit
