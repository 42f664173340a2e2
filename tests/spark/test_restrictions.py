"""A value that a target's type lacks is refused by Spark and by Arrow alike."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.targets.restrictions import Allowed, Restriction

pytestmark = pytest.mark.jvm

UUID = "0B0b7e7e-0000-4000-8000-000000000001"
CASES: list[tuple[Restriction, pa.DataType, list[tuple[Any, bool]]]] = [
    (Restriction(Allowed.NO_ZERO_CHARACTER), pa.string(), [("", False), ("a", False), ("a\0b", True), (None, False)]),
    (
        Restriction(Allowed.UUID),
        pa.string(),
        [(UUID, False), (UUID.lower(), False), (f"{UUID}0", True), (f"{{{UUID}}}", True), ("", True), (None, False)],
    ),
    (
        Restriction(Allowed.FINITE),
        pa.float64(),
        [(0.0, False), (-1.5e300, False), (math.nan, True), (math.inf, True), (-math.inf, True), (None, False)],
    ),
    (
        Restriction(Allowed.CHARACTERS, 3),
        pa.string(),
        [("abc", False), ("abcd", True), ("äöü", False), ("👍👍👍", False), ("👍👍👍👍", True), (None, False)],
    ),
    (Restriction(Allowed.BYTES, 3), pa.binary(), [(b"abc", False), (b"abcd", True), (b"", False), (None, False)]),
    (
        Restriction(Allowed.TEXT_BYTES, 3),
        pa.string(),
        [("abc", False), ("abcd", True), ("ää", True), ("äb", False), ("a\0b", True), ("", False), (None, False)],
    ),
]


@pytest.mark.parametrize(("restriction", "kind", "values"), CASES, ids=[case[0].allowed.name for case in CASES])
def test_spark_and_arrow_refuse_the_same_values(
    spark: SparkSession, restriction: Restriction, kind: pa.DataType, values: list[tuple[Any, bool]]
) -> None:
    rows = spark.createDataFrame(pa.table({"v": pa.array([value for value, _ in values], kind)}))
    by_spark = rows.selectExpr(f"coalesce({restriction.refusal_sql('v')}, false) AS refused").collect()
    for (value, refused), row in zip(values, by_spark, strict=True):
        assert row["refused"] is refused, value
        assert restriction.refuses_any(pa.chunked_array([pa.array([value], kind)])) is refused, value


def test_every_requirement_has_a_case() -> None:
    assert {case[0].allowed for case in CASES} == set(Allowed)
