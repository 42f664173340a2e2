"""Every test of this folder that takes ``kit`` or ``table`` runs on every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.contract.kits import IN_SPARK, KITS, TargetKit

IN_EVERY_RUN: dict[str, set[str]] = {
    "bigquery": set(),
    "delta in Spark": {
        "test_types",
        "test_a_soft_delete_flags_and_keeps_an_insert_revives_and_a_truncate_flags_all",
        "test_an_older_change_never_overwrites_a_newer_row_and_the_cursor_does_not_depend_on_rows",
    },
    "iceberg": {
        *("test_attempts", "test_commits", "test_copies", "test_cuts", "test_rewinds", "test_types"),
        *("test_texts_are_keys_and_values", "test_a_variable_is_only_a_text_wherever_it_is_alone"),
    },
    "iceberg on s3": set(),
    "mysql": {"test_attempts", "test_commits", "test_hostile_texts", "test_types"},
    "redshift": {"test_attempts", "test_a_value_that_only_the_target_refuses_waits"},
    "redshift with isolation by snapshots": {"test_one_of_two_concurrent_merges_of_a_batch_applies"},
    "snowflake": set(),
    "snowflake by external stage": set(),
    "spanner": {"test_attempts", "test_commits", "test_cuts", "test_merge_keyless", "test_types"}
    | {"test_a_truncate_that_comes_late_keeps_the_rows_of_later_changes"},
}
"""The files and tests that these kits run in every run; the rest is for the nightly run. Delta and PostgreSQL run
everything. BigQuery, Redshift and Snowflake have files of their own for every run, as ``test_redshift_commits``. With
Spark for all work, the other targets run in the nightly run only."""


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
    names = {item.path.stem, getattr(item, "originalname", item.name)}
    if kit in IN_EVERY_RUN:
        return not names & IN_EVERY_RUN[kit]
    return kit.endswith(IN_SPARK)


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit
