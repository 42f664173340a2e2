"""Tables that the target has already, and that a replicator takes over with their rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from spark_jobs import snapshot
from spark_jobs.writers import database
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.first_copies.test_extents import CHANGES, MAKE, Extents
from tests.spark.pipelines.schema_changes.test_policies import DATABASE, execute, policy_definition, source_database

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLES = ("loaded", "absent", "narrow", "double", "ours", "precise", "hidden")
REFUSED = {
    "hidden": "columns.mask: v",
    "narrow": "no column v",
    "double": "2 rows with key [1]",
    "ours": "_cdc_order",
    "precise": "(10,2)",
}
COLUMNS = {"hidden": Columns(mask={"v": 2})}
EXISTING = {
    "loaded": "SELECT id, id * 10 AS a, d, 'v' AS v FROM VALUES (1, DATE'2026-01-02'), (2, DATE'2026-01-03'), "
    "(99, DATE'2025-01-01') AS (id, d)",
    "narrow": "SELECT 1 AS id, 10 AS a, DATE'2026-01-02' AS d",
    "double": "SELECT id, 10 AS a, DATE'2026-01-02' AS d, 'v' AS v FROM VALUES (1), (1) AS (id)",
    "precise": "SELECT 1 AS id, CAST(10.5 AS DECIMAL(10,2)) AS a, DATE'2026-01-02' AS d, 'v' AS v",
    "hidden": "SELECT 1 AS id, 10 AS a, DATE'2026-01-02' AS d, 'v' AS v",
    "ours": "SELECT 1 AS id, 10 AS a, DATE'2026-01-02' AS d, 'v' AS v, '' AS _cdc_order",
}


def make_existing(spark: SparkSession, database: Database | None, lake: Path) -> None:
    """The tables of another tool, which the target has before the first run."""
    for table, query in EXISTING.items():
        rows = spark.sql(query)
        if database is None:
            rows.write.format("delta").save(str(lake / table))
            continue
        kinds = {"int": "int", "date": "date", "string": "varchar(20)", "decimal(10,2)": "decimal(10,2)"}
        columns = ", ".join(f"{field.name} {kinds[field.dataType.simpleString()]}" for field in rows.schema.fields)
        values = ", ".join("(" + ", ".join(f"'{value}'" for value in row) + ")" for row in rows.collect())
        name = f"{database.schema}.{table}"
        database.execute(f"CREATE TABLE {name} ({columns})", f"INSERT INTO {name} VALUES {values}")


@pytest.fixture(params=["postgres", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("delta", "mysql"))])
def taken(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Extents]:
    kind = request.param
    server = request.getfixturevalue("mariadb") if kind == "mysql" else postgres
    with existing_tables(kind, server, postgres, spark, tmp_path, TABLES) as made:
        for _ in range(2):
            made.run()
        yield made


@contextlib.contextmanager
def existing_tables(
    kind: str, server: Any, postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, tables: tuple[str, ...]
) -> Iterator[Extents]:
    """``server``: of the target."""
    with contextlib.ExitStack() as stack:
        database = None
        if kind != "delta":
            database = stack.enter_context(new_schema(kind, server, DATABASE))
        make_existing(spark, database, tmp_path / "lake")
        source = stack.enter_context(source_database(postgres, ()))
        for table in tables:
            execute(source, table, MAKE)
        target = database.target if database else Target(kind, f"{tmp_path}/lake")
        rules = tuple(
            TableRule(f"public.{table}", snapshot=Snapshot(SnapshotMode.NEVER), columns=COLUMNS.get(table, Columns()))
            for table in tables
        )
        definition = policy_definition(tmp_path, target, rules)
        yield Extents(tmp_path, spark, definition, "public", kind=kind, server=postgres, database=database)


def test_a_table_keeps_its_rows_and_gets_every_change(taken: Extents) -> None:
    assert taken.ids("loaded") == [1, 2, 99] and taken.ids("absent") == []
    for table in ("loaded", "absent"):
        taken.at_source(*CHANGES, table=table)
    for _ in range(2):
        taken.run()
    assert taken.ids("loaded") == [1, 7, 99] and taken.ids("absent") == [1, 7]
    rows = {row["id"]: (row["a"], row["v"]) for row in taken._copy("loaded")}
    assert rows == {1: (11, "v" * 20), 7: (70, "new"), 99: (990, "v")}
    assert not taken.control("public.loaded").extent.rows


def test_a_table_that_cannot_be_taken_over_is_not_touched(taken: Extents) -> None:
    for table, found in REFUSED.items():
        row = taken.row(table)
        assert row.state is TableState.BLOCKED and "CPY023" in row.error and found in row.error, row.error
        assert not taken.replicator().targets.only.state(f"public.{table}", table).control
    assert taken.ids("double") == [1, 1] and taken.ids("narrow") == [1]


@pytest.mark.parametrize("kind", ["postgres", "delta"])
def test_a_row_that_another_program_writes_while_the_table_is_taken_over_is_not_lost(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Between the read of the rows and the commit."""
    place, name = (snapshot, "require_not_paused") if kind == "delta" else (database, "index_shadow_table")
    function, written = getattr(place, name), list[bool]()
    with existing_tables(kind, postgres, postgres, spark, tmp_path, ("loaded",)) as made:

        def write_first(*given: Any) -> None:
            if not written and made.database is None:
                row = spark.sql("SELECT 77 AS id, 7 AS a, DATE'2026-01-02' AS d, 'late' AS v")
                row.write.format("delta").mode("append").save(str(tmp_path / "lake" / "loaded"))
            elif not written and made.database is not None:
                loaded = f"{made.database.schema}.loaded"
                made.database.execute(f"INSERT INTO {loaded} VALUES (77, 7, '2026-01-02', 'late')")
            written.append(True)
            function(*given)

        monkeypatch.setattr(place, name, write_first)
        made.run()
        assert written and made.row("loaded").state is not TableState.REPLICATING
        made.run()
        assert made.row("loaded").state is TableState.REPLICATING
        assert made.ids("loaded") == [1, 2, 77, 99]
