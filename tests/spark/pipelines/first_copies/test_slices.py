"""Slices of tables that started without rows, copied by backfills beside changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.spec.slices import SliceLength, Slices
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults.dag_run import DagRun
from tests.spark.databases import new_schema
from tests.spark.pipelines.first_copies.test_extents import Extents
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_policies import DATABASE, execute, policy_definition, source_database

pytestmark = [pytest.mark.jvm, pytest.mark.server]

MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a int, at timestamp)",
    "ALTER TABLE {t} REPLICA IDENTITY FULL",
    "INSERT INTO {t} SELECT k, k * 10, '2020-01-15'::timestamp + make_interval(months => k)"
    " FROM generate_series(0, 5) k",
    "INSERT INTO {t} VALUES (90, 900, NULL), (91, 910, '2020-02-01'), (92, 920, '2020-03-01')",
)
BY_MONTH = Snapshot(SnapshotMode.SCHEMA_ONLY, slices=Slices("at", SliceLength.MONTH))
RULES = (
    TableRule("public.sliced", snapshot=BY_MONTH),
    TableRule("public.softly", snapshot=BY_MONTH, on_delete=OnDelete.SOFT),
)
TABLES = ("sliced", "softly")
FEBRUARY, HALF_A_YEAR = ("2020-02-01", "2020-02-02"), ("2020-01-01", "2020-07-01")


def backfill(sliced: Extents, interval: tuple[str, str], **more: object) -> DagRun:
    start, end = (f"{day}T00:00:00+00:00" for day in interval)
    return sliced.execute(replace(sliced.dag_run(**more), interval=(start, end)))


@pytest.fixture(
    params=["postgres", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("delta", "iceberg", "mysql"))]
)
def sliced(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Extents]:
    kind = request.param
    with contextlib.ExitStack() as stack:
        database = None
        if kind in ("postgres", "mysql"):
            server = postgres if kind == "postgres" else request.getfixturevalue("mariadb")
            database = stack.enter_context(new_schema(kind, server, DATABASE))
        source = stack.enter_context(source_database(postgres, ()))
        for table in TABLES:
            execute(source, table, MAKE)
        target = database.target if database else Target(kind, f"{tmp_path}/lake")
        definition = policy_definition(tmp_path, target, RULES)
        made = Extents(tmp_path, spark, definition, "public", kind=kind, server=postgres, database=database)
        made.run_until_idle()
        yield made


def ids(sliced: Extents, table: str) -> list[int]:
    return sorted(row["id"] for row in sliced._copy(table) if not row.get("_cdc_deleted"))


def test_a_backfill_copies_the_slices_that_start_in_its_interval(sliced: Extents) -> None:
    assert {table: ids(sliced, table) for table in TABLES} == {table: [] for table in TABLES}
    window = sliced.control("public.sliced").window
    run = backfill(sliced, FEBRUARY)
    assert run.green, run.problems
    assert {table: ids(sliced, table) for table in TABLES} == {table: [1, 91] for table in TABLES}
    control = sliced.control("public.sliced")
    assert control.window == window and is_catching_up(sliced.row("sliced"))
    for statement in ("UPDATE {t} SET a = 7 WHERE id IN (1, 2)", "DELETE FROM {t} WHERE id IN (3, 91)"):
        for table in TABLES:
            sliced.at_source(statement, table=table)
    assert backfill(sliced, HALF_A_YEAR).green, "the changes are not applied yet"
    sliced.run_until_idle()
    for table in TABLES:
        assert ids(sliced, table) == [0, 1, 2, 4, 5, 92]
    sliced.at_source("UPDATE {t} SET a = a + 1 WHERE id = 90", table="sliced")
    sliced.run_until_idle()
    assert sliced.outcome("sliced") == SAME


@pytest.mark.nightly
def test_a_killed_slice_is_copied_again_with_the_same_result(sliced: Extents) -> None:
    assert not backfill(sliced, FEBRUARY, leave_out=["merge"]).green
    for _ in range(2):  # the second one as if the first had died after its commit
        assert backfill(sliced, FEBRUARY).green
    assert ids(sliced, "sliced") == ids(sliced, "softly") == [1, 91]
    sliced.at_source("UPDATE {t} SET a = 8 WHERE id = 1", table="sliced")
    sliced.run_until_idle()
    assert backfill(sliced, FEBRUARY).green
    rows = {row["id"]: row["a"] for row in sliced._copy("sliced")}
    assert rows == {1: 8, 91: 910}
