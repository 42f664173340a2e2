"""Times that no target has, from PostgreSQL into a lake: two keys of the source are never one key of the target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable, TableRule, Target
from spark_jobs import snapshot, verify
from tests.spark.conftest import Database
from tests.spark.replicator import Replicator, by_table

pytestmark = pytest.mark.jvm

AS_TEXT = Columns(cast={"d": "text", "t": "text"})
RULES = [
    TableRule("public.stopped"),
    TableRule("public.texts", columns=AS_TEXT),
    TableRule("public.nulls", on_unrepresentable=OnUnrepresentable.SET_NULL),
    TableRule("public.refused"),
]
NEIGHBOURS = [
    ("infinity", "infinity"),
    ("9999-12-31", "9999-12-31 23:59:59.999999+00"),
    ("10000-01-01", "10000-01-01 00:00:00+00"),
    ("-infinity", "-infinity"),
    ("0001-01-01", "0001-01-01 00:00:00+00"),
    ("0001-12-31 BC", "0001-12-31 00:00:00+00 BC"),
]
"""Dates and times that are equal in a calendar of the years 1 to 9999."""


@pytest.fixture(params=["delta", "iceberg"])
def replicator(
    tmp_path: Path, database: Database, connection: ConnectionInfo, request: pytest.FixtureRequest
) -> Replicator:
    for name, key in (("stopped", "d, t"), ("texts", "d, t"), ("nulls", "id"), ("refused", "id")):
        database.execute(f"CREATE TABLE {name} (id int, d date, t timestamptz, PRIMARY KEY ({key}))")
    name = f"unrep{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE {', '.join(rule.source for rule in RULES)}")
    lake = Target(request.param, str(tmp_path / "lake"))
    return Replicator(tmp_path, name, connection, RULES, target=lake)


def fill(database: Database, table: str) -> None:
    for number, (day, moment) in enumerate(NEIGHBOURS):
        database.execute(f"INSERT INTO {table} VALUES ({number}, '{day}', '{moment}')")


def copied(replicator: Replicator, *tables: str) -> dict[str, TableResult]:
    step = replicator.step(StepKind.SNAPSHOT, replicator.tasks(*tables))
    return by_table(replicator.run(step, snapshot.run))


def verified(replicator: Replicator, lo: dict[str, str], *tables: str) -> dict[str, TableResult]:
    """Changes made meanwhile are merged before the comparison."""
    tasks = replicator.tasks(*tables)
    compared = tuple(task.table for task in tasks)
    window = replicator.log.sealed() + 1
    step = replicator.step(StepKind.VERIFY, tasks, window=window, lo=lo, compare=compared)
    return by_table(replicator.run(step, verify.run))


def rows(spark: SparkSession, replicator: Replicator, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    (task,) = replicator.tasks(table)
    frame = replicator.foreign_session(spark).table(replicator.named(task.target))
    return sorted(map(tuple, frame.selectExpr(*columns).collect()), key=str)


def test_neighbours_of_the_calendar_limits_stay_distinct_in_copies_and_in_the_stream(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    lo = dict(replicator.source.open_stream([rule.source for rule in RULES]))
    fill(database, "texts")
    fill(database, "nulls")
    result = copied(replicator, "public.texts", "public.nulls")
    assert {one.outcome for one in result.values()} == {Outcome.DONE}, result
    for table in ("texts", "nulls"):
        database.execute(f"DELETE FROM {table} WHERE d IN ('infinity', '0001-01-01')")
        database.execute(f"INSERT INTO {table} VALUES (100, 'infinity', '-infinity')")
        database.execute(f"UPDATE {table} SET d = '-infinity', t = '9999-12-31 23:59:59.999999+00' WHERE id = 5")
    result = verified(replicator, lo, "public.texts", "public.nulls")
    assert {name: one.problem for name, one in result.items()} == dict.fromkeys(result)
    assert len(result) == 2 and all(one.detail["identical"] for one in result.values()), result
    assert rows(spark, replicator, "public.texts", ("d", "t", "id")) == [
        ("-infinity", "-infinity", 3),
        ("-infinity", "9999-12-31 23:59:59.999999+00", 5),
        ("10000-01-01", "10000-01-01 00:00:00+00", 2),
        ("9999-12-31", "9999-12-31 23:59:59.999999+00", 1),
        ("infinity", "-infinity", 100),
    ]
    shown = ("id", "CAST(d AS STRING)", "_cdc_text_d", "t IS NULL", "_cdc_text_t")
    assert rows(spark, replicator, "public.nulls", shown) == [
        (1, "9999-12-31", None, False, None),
        (100, None, "infinity", True, "-infinity"),
        (2, None, "10000-01-01", True, "10000-01-01 00:00:00+00"),
        (3, None, "-infinity", True, "-infinity"),
        (5, None, "-infinity", False, None),
    ]


def test_without_a_rule_they_stop_their_table_and_no_other(replicator: Replicator, database: Database) -> None:
    lo = dict(replicator.source.open_stream([rule.source for rule in RULES]))
    result = copied(replicator)
    assert {one.outcome for one in result.values()} == {Outcome.DONE}, result
    fill(database, "stopped")
    fill(database, "refused")
    fill(database, "texts")
    result = verified(replicator, lo)
    problems = {name: one.problem and one.problem.code for name, one in result.items()}
    assert problems == {
        "public.stopped": "QUA001",
        "public.refused": "QUA001",
        "public.texts": None,
        "public.nulls": None,
    }


def test_a_copy_that_reads_them_fails_with_a_remedy(replicator: Replicator, database: Database) -> None:
    replicator.source.open_stream([rule.source for rule in RULES])
    for table in ("stopped", "refused", "nulls"):
        fill(database, table)
    result = copied(replicator)
    problems = {name: one.problem for name, one in result.items()}
    assert problems.pop("public.texts") is problems.pop("public.nulls") is None
    for problem in problems.values():
        assert problem is not None and problem.code == "CPY009" and "cast: {d: text, t: text}" in problem.do
    assert {one.outcome for name, one in result.items() if name[7:] in ("stopped", "refused")} == {Outcome.BLOCKED}
