"""Columns with difficult names, in every step: copy, stream, key changes, fence, added column, verify."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.spec.definition import Columns, OnDelete, TableRule
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.targets.naming import default_name
from spark_jobs import extract, merge, resync, snapshot, stage, verify
from tests.spark.replicator import Replicator, by_table
from tests.spark.test_resync import start_resync

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]

ID = "two words, dotted.id"
ODD = (
    *("dotted.name", "a.b.c", ".", "brace{}()=;:", "per%cent %s %(x)s $1 ? # @{x}", "it's", 'say "no"', "back`tick"),
    *(
        "back\\slash",
        "new\nline",
        "tab\there",
        "-- dash /* star */",
        " leading",
        "trailing ",
        "näme 名前 🎉",
        "e\u0301",
    ),
    *("x" * 63, "CamelCase", "NULL", "select"),
)
KEYED = (*ODD, "_op", "_known", "root", "found", "k", "v", "t", "s")
KEYLESS = (*ODD[:8], "_op", "row", "net", "stay", "held", "col", "n", "t0", "v")
"""The odd names, and names that our own SQL uses or used to."""

WIDE, ADDED, SAY_NO = "wide, stored apart", 'added; later = "odd".ly', 'say "no"'


@pytest.fixture
def replicator(tmp_path: Path, database: Database, connection: ConnectionInfo) -> Replicator:
    """``keyed`` has the key columns ``ID`` and the first of ``ODD``; ``bag`` has no key; ``twins`` differ by case."""
    keyed, bag = (", ".join(f"{quoted(name)} text DEFAULT 'd'" for name in names) for names in (KEYED, KEYLESS))
    key = f"{quoted(ID)}, {quoted(ODD[0])}"
    database.execute(
        f"CREATE TABLE keyed ({quoted(ID)} int, {keyed}, {quoted(WIDE)} text, PRIMARY KEY ({key}))".encode()
    )
    database.execute(f"ALTER TABLE keyed ALTER COLUMN {quoted(WIDE)} SET STORAGE EXTERNAL")
    database.execute(f"CREATE TABLE bag ({quoted(ID)} int, {bag})".encode())
    database.execute("ALTER TABLE bag REPLICA IDENTITY FULL")
    database.execute('CREATE TABLE twins (id int PRIMARY KEY, a text, "A" text, _cdc_x text)')
    for name, wide in (("keyed", f", {quoted(WIDE)}"), ("bag", "")):
        value = ", repeat('w', 9000)" if wide else ""
        database.execute(f"INSERT INTO {name} ({quoted(ID)}{wide}) SELECT n{value} FROM generate_series(1, 20) n")
    database.execute("INSERT INTO twins VALUES (1, 'a', 'A', 'x')")
    name = f"odd{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR ALL TABLES")
    rules = [
        TableRule("public.keyed", on_delete=OnDelete.SOFT, cluster_by=("dotted.name",)),
        TableRule("public.bag"),
        TableRule("public.twins", columns=Columns(exclude=("A", "_cdc_x"))),
    ]
    return Replicator(tmp_path, name, connection, rules)


def streamed(replicator: Replicator, lo: dict[str, str]) -> dict[str, str]:
    """Lands, stages and merges one window; returns its end."""
    tables, window = [rule.source for rule in replicator.definition.tables], replicator.log.sealed() + 1
    limit = dict(replicator.source.status(lo, tables).limit)
    done(replicator, StepKind.EXTRACT, extract.run, window=window, lo=lo, limit=limit)
    staged = replicator.step(StepKind.STAGE, window=window)
    assert outcomes(by_table(replicator.run(staged, stage.run))) <= {Outcome.DONE, Outcome.UNCHANGED}
    done(replicator, StepKind.MERGE, merge.run, window=window, merge_of=staged.attempt)
    return dict(replicator.log.manifest(window).hi)


def fence(replicator: Replicator) -> None:
    for task in replicator.tasks():
        current = replicator.target.state(task.table, task.target)
        assert current.control is not None
        replicator.target.fence(task.target, current, current.control.fenced(attempt="pause"))


def done(replicator: Replicator, kind: StepKind, run: object, **more: object) -> dict[str, TableResult]:
    result = by_table(replicator.run(replicator.step(kind, **more), run))  # type: ignore[arg-type]
    trouble = {name: one.problem for name, one in result.items() if one.problem}
    assert not trouble
    return result


def outcomes(results: dict[str, TableResult]) -> set[Outcome]:
    return {one.outcome for one in results.values()}


def test_names_that_differ_by_case_or_are_ours_are_refused_with_a_remedy(replicator: Replicator) -> None:
    described = [schema for schema in replicator.source.tables() if schema.table == "public.twins"]
    definition = replicator.definition
    bare = definition.__class__(**{**definition.__dict__, "tables": (TableRule("public.twins"),)})
    selections, problems = select(bare, described, default_name)
    assert selections == ()
    assert {problem.code for problem in problems} == {"DEF025", "DEF026"}
    assert all("exclude" in problem.do for problem in problems)


@pytest.mark.nightly
def test_columns_of_any_name_are_copied_changed_fenced_added_and_verified(
    spark: SparkSession, replicator: Replicator, database: Database
) -> None:
    tables = [rule.source for rule in replicator.definition.tables]
    lo = dict(replicator.source.open_stream(tables))
    done(replicator, StepKind.SNAPSHOT, snapshot.run)
    current = replicator.copied(spark, replicator.tasks("public.keyed")[0]).columns
    assert current == [ID, *KEYED, WIDE, "_cdc_order", "_cdc_deleted"]

    one = quoted(ID)
    database.execute(f"UPDATE keyed SET {quoted('a.b.c')} = 'changed' WHERE {one} <= 5")
    database.execute(
        f"UPDATE keyed SET {one} = {one} + 100, {quoted('back`tick')} = 'moved' WHERE {one} BETWEEN 3 AND 8"
    )
    database.execute(f"DELETE FROM keyed WHERE {one} > 15")
    database.execute(f"INSERT INTO keyed ({one}) VALUES (16), (200)")
    database.execute(f"UPDATE bag SET {quoted('net')} = 'n' WHERE {one} < 4")
    database.execute(f"DELETE FROM bag WHERE {one} > 18")
    database.execute(f"INSERT INTO bag ({one}) VALUES (1), (1), (7)")
    database.execute("UPDATE twins SET a = 'b'")
    lo = streamed(replicator, lo)

    fence(replicator)
    for name in ("keyed", "bag", "twins"):
        database.execute(f"ALTER TABLE {name} ADD COLUMN {quoted(ADDED)} int DEFAULT 5")
    database.execute(f"UPDATE keyed SET {quoted(SAY_NO)} = 'yes' WHERE {one} < 3")
    database.execute("INSERT INTO twins VALUES (2, 'c')")
    database.execute(f"INSERT INTO bag ({one}) VALUES (9)")
    lo = streamed(replicator, lo)
    step = replicator.step(StepKind.VERIFY, window=replicator.log.sealed() + 1, lo=lo)
    verified = by_table(replicator.run(step, verify.run))
    assert {name: one.problem for name, one in verified.items()} == dict.fromkeys(verified)
    for name, result in verified.items():
        assert result.detail["identical"], (name, result.detail)
    assert replicator.copied(spark, replicator.tasks("public.twins")[0]).count() == 2
    fence(replicator)


@pytest.mark.nightly
def test_a_resync_adds_a_column_of_an_odd_name(spark: SparkSession, replicator: Replicator, database: Database) -> None:
    """The table was made without column mapping."""
    replicator.source.open_stream(["public.twins"])
    done(replicator, StepKind.SNAPSHOT, snapshot.run)
    database.execute('ALTER TABLE twins ADD COLUMN "of two words" int DEFAULT 5')
    start_resync(replicator, "public.twins")
    result = by_table(replicator.run(replicator.step(StepKind.RESYNC, replicator.tasks("public.twins")), resync.run))
    assert result["public.twins"].outcome is Outcome.DONE, result
    (row,) = replicator.copied(spark, replicator.tasks("public.twins")[0]).drop("_cdc_order").collect()
    assert row.asDict() == {"id": 1, "a": "a", "of two words": 5}
