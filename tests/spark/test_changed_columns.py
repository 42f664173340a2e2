"""Columns that are hashed, masked, truncated, cast, renamed and added, from PostgreSQL: into two lakes, and never in
clear into any file."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.definition import (
    Comparison,
    Condition,
    OnBadRecord,
    OnDelete,
    OnUnrepresentable,
    TableRule,
    Target,
)
from spark_jobs import snapshot, verify
from tests.spark.conftest import Database
from tests.spark.databases import Database as Warehouse
from tests.spark.replicator import Replicator, by_table
from tests.spark.test_verify import FULL, TYPES, copied, values, verified
from tests.spark.test_warehouse_pipeline import KITS

pytestmark = pytest.mark.jvm

KEY = "0123456789abcdef0123456789abcdef"
CLEAR = "clear-"
"""Every value that must not be stored begins with this."""

PEOPLE = TableRule(
    "public.people",
    columns=Columns(
        hash=("id", "email"),
        mask={"card": 4},
        truncate={"note": 3},
        cast={"amount": "decimal(12,4)", "age": "int16"},
        rename={"id": "person", "email": "mail"},
        add=(
            AddedColumn("region", "eu"),
            AddedColumn("origin", metadata=Metadata.SOURCE_TABLE),
            AddedColumn("changed_at", metadata=Metadata.COMMIT_TIME),
            AddedColumn("change", metadata=Metadata.OPERATION),
        ),
    ),
    on_bad_record=OnBadRecord.QUARANTINE,
    on_delete=OnDelete.SOFT,
    where=(Condition("email", Comparison.NOT_EQUAL, "other@example.org"),),
    cluster_by=("email",),
)
VISITS = TableRule("public.visits", columns=Columns(hash=("person_id",), truncate={"place": 2}))
LOGINS = TableRule("public.logins", columns=Columns(hash=("who",), add=(AddedColumn("origin", "x"),)))
KINDS = TableRule(
    "public.kinds",
    columns=Columns(hash=("k", *TYPES)),
    on_unrepresentable=OnUnrepresentable.SET_NULL,
)


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.nightly)])
def replicator(
    tmp_path: Path, database: Database, connection: ConnectionInfo, request: pytest.FixtureRequest
) -> Replicator:
    return build_replicator(tmp_path, database, connection, target=Target(request.param, str(tmp_path / "lake")))


def build_replicator(tmp_path: Path, database: Database, connection: ConnectionInfo, **location: Any) -> Replicator:
    database.execute(
        "CREATE TABLE people (id text PRIMARY KEY, email text, card text, note text, amount numeric(8,2), age text,"
        " born date)"
    )
    database.execute("ALTER TABLE people REPLICA IDENTITY FULL")
    database.execute("CREATE TABLE visits (n int PRIMARY KEY, person_id text, place text)")
    database.execute("CREATE TABLE logins (who text, at int)")
    database.execute("ALTER TABLE logins REPLICA IDENTITY FULL")
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    database.execute(f"CREATE TABLE kinds (k int PRIMARY KEY, {columns})")
    database.execute(f"INSERT INTO kinds VALUES {', '.join(values(k, row) for k, row in enumerate(FULL))}")
    for n in range(1, 9):
        person = f"'{CLEAR}id-{n}', '{CLEAR}{n}@example.org', '{CLEAR}4111-111{n}', 'abc {CLEAR}note', {n}.25, '{n}'"
        database.execute(f"INSERT INTO people VALUES ({person}, '2000-01-0{n}')")
        database.execute(f"INSERT INTO visits VALUES ({n}, '{CLEAR}id-{n}', 'xy {CLEAR}place')")
        database.execute(f"INSERT INTO logins VALUES ('{CLEAR}login-{n % 3}', {n % 2})")
    name = f"changed{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE people, visits, logins, kinds")
    made = Replicator(tmp_path, name, connection, [PEOPLE, VISITS, LOGINS, KINDS], **location)
    made.definition = replace(made.definition, hash_connection="hashes")
    made.secrets = replace(made.secrets, hash=ConnectionInfo("hashes", password=KEY))
    return made


def hashed(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def rows(spark: SparkSession, replicator: Replicator, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    frame = replicator.foreign_session(spark).table(replicator.named(table))
    return sorted(map(tuple, frame.selectExpr(*columns).collect()), key=str)


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """The text of every file, and of every value in it. The file with the secrets of a job is deleted by the job."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "secrets-" not in path.name:
            yield str(path), path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                yield str(path), repr(pq.ParquetFile(path).read().to_pylist())


def clear_values(folder: Path) -> list[str]:
    return [f"{path}: {text[text.index(CLEAR) - 40 :][:120]}" for path, text in contents(folder) if CLEAR in text]


def change(database: Database) -> None:
    database.execute(f"UPDATE people SET card = '{CLEAR}5500-0000', age = '44' WHERE id = '{CLEAR}id-1'")
    database.execute(f"UPDATE people SET id = '{CLEAR}id-22', note = 'é{CLEAR}' WHERE id = '{CLEAR}id-2'")
    database.execute(f"DELETE FROM people WHERE id = '{CLEAR}id-3'")
    database.execute(f"INSERT INTO people VALUES ('{CLEAR}id-50', 'other@example.org')")
    database.execute(f"UPDATE visits SET person_id = '{CLEAR}id-22', n = n + 100 WHERE n = 2")
    database.execute(f"UPDATE logins SET at = 9 WHERE who = '{CLEAR}login-1' AND at = 0")
    database.execute(f"DELETE FROM logins WHERE who = '{CLEAR}login-2'")
    database.execute(f"INSERT INTO kinds VALUES {', '.join(values(k + 10, row) for k, row in enumerate(FULL))}")
    database.execute("UPDATE kinds SET k = k + 100 WHERE k < 2")


def require_identical(replicator: Replicator, lo: dict[str, str], database: Database) -> dict[str, TableResult]:
    """The result of a comparison after changes."""
    change(database)
    result = verified(replicator, lo)
    assert {name: one.problem for name, one in result.items()} == dict.fromkeys(result)
    wrong = {name: [c for c, same in one.detail["columns"].items() if not same] for name, one in result.items()}
    assert wrong == {f"public.{name}": [] for name in ("people", "visits", "logins", "kinds")}
    assert all(one.detail["identical"] for one in result.values())
    return result


def test_copies_and_changes_have_the_changed_columns_and_no_file_has_a_clear_value(
    spark: SparkSession, replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    lo = copied(replicator)
    people = ("person", "mail", "card", "note", "CAST(amount AS STRING)", "age", "region", "origin", "change")
    unchanged = {row[0]: row for row in rows(spark, replicator, "people", people)}
    assert unchanged[hashed(f"{CLEAR}id-1")] == (
        hashed(f"{CLEAR}id-1"),
        hashed(f"{CLEAR}1@example.org"),
        "****1111",
        "abc",
        "1.2500",
        1,
        "eu",
        "public.people",
        "read",
    )
    result = require_identical(replicator, lo, database)
    assert {"changed_at", "change"}.isdisjoint(result["public.people"].detail["columns"]), "the source has none"

    now = {row[0]: row for row in rows(spark, replicator, "people", (*people, "_cdc_deleted", "changed_at IS NULL"))}
    assert now[hashed(f"{CLEAR}id-1")][2:] == (
        "****0000",
        "abc",
        "1.2500",
        44,
        "eu",
        "public.people",
        "update",
        False,
        False,
    )
    assert now[hashed(f"{CLEAR}id-22")][3] == "éc" + CLEAR[1] and not now[hashed(f"{CLEAR}id-22")][-1]
    assert now[hashed(f"{CLEAR}id-3")][-2] and hashed(f"{CLEAR}id-50") not in now
    assert now[hashed(f"{CLEAR}id-4")][-3:] == ("read", False, True)

    spark_session = replicator.foreign_session(spark)
    joined = spark_session.sql(
        f"SELECT count(*) FROM {replicator.named('people')} p JOIN {replicator.named('visits')} v"
        " ON p.person = v.person_id AND NOT p._cdc_deleted"
    ).collect()[0][0]
    assert joined == 7, "one hash for one value in two tables, also after it changed"
    assert clear_values(tmp_path) == []


@pytest.mark.nightly
def test_a_new_column_of_a_table_with_hidden_columns_is_added_with_its_default(
    replicator: Replicator, database: Database
) -> None:
    lo = copied(replicator)
    database.execute("ALTER TABLE visits ADD COLUMN rating int DEFAULT 5")
    database.execute(f"UPDATE visits SET rating = 6, place = 'ab{CLEAR}' WHERE n = 1")
    result = verified(replicator, lo)
    visits = result["public.visits"]
    assert visits.problem is None and visits.detail["identical"] and visits.detail["columns"]["rating"]


@pytest.mark.nightly
def test_a_hidden_column_that_is_renamed_during_a_run_is_not_copied_in_clear(
    replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    lo = copied(replicator)
    planned = replicator.tasks()
    database.execute("ALTER TABLE people RENAME COLUMN note TO remark")
    database.execute(f"UPDATE people SET remark = '{CLEAR}new' WHERE id = '{CLEAR}id-1'")
    replicator.run(replicator.step(StepKind.VERIFY, planned, window=1, lo=lo), verify.run)
    assert replicator.log.sealed() and clear_values(tmp_path) == []
    with pytest.raises(AssertionError, match="DEF042"):
        replicator.tasks()


@pytest.mark.nightly
def test_databases_hold_the_same_tables(
    tmp_path: Path, database: Database, connection: ConnectionInfo, warehouse: Warehouse
) -> None:
    replicator = build_replicator(
        tmp_path, database, connection, target=warehouse.target, warehouse=warehouse.connection
    )
    rules = tuple(replace(rule, cluster_by=()) for rule in replicator.definition.tables)
    replicator.definition = replace(replicator.definition, tables=rules)
    assert replicator.target.check(replicator.tasks()) == []
    require_identical(replicator, copied(replicator), database)
    people = dict(warehouse.rows(("person", "card"), "people"))
    assert people[hashed(f"{CLEAR}id-1")] == "****0000"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KITS)
def test_warehouses_hold_the_same_tables(
    kind: str,
    spark: SparkSession,
    tmp_path: Path,
    database: Database,
    connection: ConnectionInfo,
    request: pytest.FixtureRequest,
) -> None:
    with KITS[kind](spark, tmp_path, request.getfixturevalue) as kit:
        replicator = build_replicator(
            tmp_path, database, connection, target=kit.target, warehouse=kit.secrets.target, stage=kit.secrets.stage
        )
        found = {problem.code for problem in replicator.target.check(replicator.tasks())}
        assert found <= {"TGT055"}, "Spanner has no `cluster_by`"
        require_identical(replicator, copied(replicator), database)


@pytest.mark.nightly
def test_a_new_column_of_a_sensitive_table_reaches_no_file(
    replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    rules = tuple(replace(rule, sensitive=True) for rule in replicator.definition.tables)
    replicator.definition = replace(replicator.definition, tables=rules)
    lo = copied(replicator)
    planned = replicator.tasks()
    database.execute(f"ALTER TABLE visits ADD COLUMN diagnosis text DEFAULT '{CLEAR}a'")
    database.execute(f"UPDATE visits SET diagnosis = '{CLEAR}b', place = 'new' WHERE n = 1")
    step = replicator.step(StepKind.VERIFY, planned, window=1, lo=lo)
    result = by_table(replicator.run(step, verify.run))["public.visits"]
    assert result.problem is None and result.detail["identical"], "the column is added while the run is under way"
    (visits,) = replicator.tasks("public.visits")
    assert (visits.withheld, visits.schema.names) == (("diagnosis",), ("n", "person_id", "place"))
    assert clear_values(tmp_path) == []


@pytest.mark.nightly
def test_a_bad_record_of_such_a_table_is_kept_without_its_bytes(
    replicator: Replicator, database: Database, tmp_path: Path
) -> None:
    lo = copied(replicator)
    database.execute(f"UPDATE people SET born = 'infinity', note = '{CLEAR}' WHERE id = '{CLEAR}id-5'")
    database.execute(f"UPDATE people SET age = '{CLEAR}age' WHERE id = '{CLEAR}id-6'")
    problem = verified(replicator, lo)["public.people"].problem
    assert problem is not None and problem.code == "CPY009", "the rows of the source are read to compare them"
    control = replicator.target.state("public.people", "people").control
    assert control is not None and control.carry.quarantined == 2
    (staged,) = [folder for folder in tmp_path.rglob("quarantine") if folder.is_dir()]
    written = [path.read_text() for path in staged.rglob("*.json")]
    assert len(written) == 2 and all('"codec": "withheld"' in text and '"raw": ""' in text for text in written)
    assert clear_values(tmp_path) == []


@pytest.mark.nightly
def test_a_copy_whose_value_cannot_be_cast_stops_without_the_value(
    replicator: Replicator, database: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database.execute(f"UPDATE people SET age = '{CLEAR}age' WHERE id = '{CLEAR}id-6'")
    replicator.source.open_stream([rule.source for rule in replicator.definition.tables])
    result = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
    problem = result["public.people"].problem
    assert problem is not None and problem.code == "CPY009" and "age: a value that int16 does not have" in str(problem)
    assert {one.outcome for name, one in result.items() if name != "public.people"} == {Outcome.DONE}
    assert clear_values(tmp_path) == [] and CLEAR not in "".join(capfd.readouterr())
