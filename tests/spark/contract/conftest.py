"""Every test of this folder that takes ``kit`` or ``table`` runs on every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.contract.kits import IN_SPARK, KITS, TargetKit

IN_EVERY_RUN = frozenset({"test_merge_keyed", "test_merge_schemas", "test_types"})
"""Spark's merges into Delta are tested by these in every run; all modules and targets with Spark in the nightly one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        spec = getattr(item, "callspec", None)
        if spec and any(is_nightly(item, str(value)) for value in flat(spec.params.values())):
            item.add_marker(pytest.mark.nightly)


def flat(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        yield from value if isinstance(value, tuple) else (value,)


def is_nightly(item: pytest.Item, kit: str) -> bool:
    return kit.endswith(IN_SPARK) and not (kit.startswith("delta") and item.path.stem in IN_EVERY_RUN)


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit
