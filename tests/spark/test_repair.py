"""A repair cures what a comparison found, while writers continue, and reads no other row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from spark_jobs import snapshot, verify
from tests.spark.databases import new_schema
from tests.spark.replicator import Replicator, by_table

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]

ITEMS, PAIRS, UUIDS, BARE = 5_000, 3_000, 300, 50


class Planted:
    """Four tables, their replicator, and statements of another writer of the copies."""

    def __init__(self, replicator: Replicator, database: Database, statement: Callable[[str], Any]) -> None:
        self.replicator, self.database, self.statement = replicator, database, statement
        self.lo = dict(replicator.source.open_stream([rule.source for rule in replicator.definition.tables]))
        copies = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
        assert {one.outcome for one in copies.values()} == {Outcome.DONE}, copies

    def verified(self, *tables: str, repair: bool = True) -> dict[str, TableResult]:
        results = self.run(*tables, repair=repair)
        assert {one.problem for one in results.values()} == {None}, results
        return results

    def run(self, *tables: str, repair: bool = True) -> dict[str, TableResult]:
        names = tuple(f"public.{table}" for table in tables)
        window, more = self.replicator.log.sealed(), {"compare": names, "repair_tables": names if repair else ()}
        lo = dict(self.replicator.log.manifest(window).hi) if window else self.lo
        step = self.replicator.step(StepKind.VERIFY, window=window + 1, lo=lo, **more)
        results = by_table(self.replicator.run(step, verify.run))
        return {name.removeprefix("public."): result for name, result in results.items()}

    def report(self, result: TableResult) -> list[tuple[str, str, bool, bool]]:
        """Key and column of each line, and whether each side has a hash."""
        with self.replicator.log.store.open_input(result.detail["report"]) as content:
            rows = pq.read_table(content).to_pylist()
        assert all(row["source_hash"] != row["target_hash"] for row in rows)
        return [(row["key"], row["column"], bool(row["source_hash"]), bool(row["target_hash"])) for row in rows]


def fill(database: Database) -> None:
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, v text, n numeric(10,2), at timestamptz)")
    database.execute(
        f"INSERT INTO items SELECT n, 'v' || n, n / 4.0, '2024-01-01Z'::timestamptz + n * interval '1 h'"
        f" FROM generate_series(1, {ITEMS}) n"
    )
    database.execute("CREATE TABLE pairs (b varchar(20), a date, v text, PRIMARY KEY (b, a))")
    database.execute(
        "INSERT INTO pairs SELECT chr(65 + n % 50) || 'é ''' || n / 50 % 7, date '2000-01-01' + n, 'v'"
        f" FROM generate_series(1, {PAIRS}) n"
    )
    database.execute("CREATE TABLE uuids (id uuid PRIMARY KEY, v text)")
    database.execute(f"INSERT INTO uuids SELECT md5(n::text)::uuid, 'v' FROM generate_series(1, {UUIDS}) n")
    database.execute("CREATE TABLE bare (v text)")
    database.execute("ALTER TABLE bare REPLICA IDENTITY FULL")
    database.execute(f"INSERT INTO bare SELECT 'v' || n FROM generate_series(1, {BARE}) n")
    database.execute("ANALYZE")


RULES = (
    TableRule("public.items"),
    TableRule("public.pairs"),
    TableRule("public.uuids", on_delete=OnDelete.SOFT),
    TableRule("public.bare"),
)


def lake(kind: str, folder: Path, database: Database, connection: ConnectionInfo, spark: SparkSession) -> Planted:
    fill(database)
    name = f"rep{abs(hash(str(folder))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE items, pairs, uuids, bare")
    replicator = Replicator(folder, name, connection, RULES, target=Target(kind, str(folder / "lake")))

    def statement(text: str) -> Any:
        session = replicator.foreign_session(spark)
        return session.sql(text.format(**{rule.source[7:]: replicator.named(rule.source[7:]) for rule in RULES}))

    return Planted(replicator, database, statement)


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.nightly)])
def planted(
    tmp_path: Path,
    database: Database,
    connection: ConnectionInfo,
    spark: SparkSession,
    request: pytest.FixtureRequest,
) -> Planted:
    return lake(request.param, tmp_path, database, connection, spark)


DAMAGE = (
    "UPDATE {items} SET v = 'damaged' WHERE id IN (17, 4321)",
    "UPDATE {items} SET n = NULL, at = NULL WHERE id = 4999",
    "DELETE FROM {items} WHERE id IN (1, 777)",
    "INSERT INTO {items} (id, v) VALUES (-5, 'extra'), (50000, 'extra')",
    "UPDATE {pairs} SET v = 'damaged' WHERE a = date '2000-01-11'",
    "DELETE FROM {pairs} WHERE a = date '2003-05-05'",
    "INSERT INTO {pairs} (b, a, v) VALUES ('Zé', date '1999-12-31', 'extra')",
    "UPDATE {uuids} SET v = 'damaged' WHERE id = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'",
    "UPDATE {uuids} SET _cdc_deleted = true WHERE id = 'c81e728d-9d4c-2f63-6f06-7f89cc14862c'",
)
DAMAGED_ITEMS = {"-5", "1", "17", "777", "4321", "4999", "50000"}


FOUND = {"items": 7, "pairs": 3, "uuids": 2}


def cured(planted: Planted, *tables: str) -> dict[str, TableResult]:
    """Damages the copies, repairs them while rows change, and compares them again."""
    for text in DAMAGE:
        if any(f"{{{table}}}" in text for table in tables):
            planted.statement(text)
    with writing(planted.database):
        found = planted.verified(*tables)
        again = planted.verified(*tables, repair=False)
    assert [one.detail["identical"] for one in found.values()] == [False] * len(tables)
    repaired = {name: (one.detail["differing"], one.detail["repaired"]) for name, one in found.items()}
    assert repaired == {table: (FOUND[table], FOUND[table]) for table in tables}
    assert [one.detail for one in again.values() if not one.detail["identical"]] == []
    return found


def test_damaged_missing_and_surplus_rows_are_repaired_while_rows_change(planted: Planted) -> None:
    found = cured(planted, "items")["items"]
    assert found.detail["rows_read"] < ITEMS * 0.5
    report = planted.report(found)
    assert {key for key, *_ in report} == DAMAGED_ITEMS
    assert [line for line in report if line[0] in ("17", "4999")] == [
        ("17", "v", True, True),
        ("4999", "n", True, True),
        ("4999", "at", True, True),
    ]
    assert {line[2:] for line in report if line[0] == "-5"} == {(False, True)}
    assert {line[2:] for line in report if line[0] == "1"} == {(True, False)}


@pytest.mark.nightly
def test_rows_with_composite_keys_texts_and_soft_deletes_are_repaired(planted: Planted) -> None:
    cured(planted, "pairs", "uuids")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.nightly) for kind in ("postgres", "mysql")])
def test_copies_in_databases_are_repaired(
    tmp_path: Path, database: Database, connection: ConnectionInfo, kind: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("postgres" if kind == "postgres" else "mariadb")
    fill(database)
    name = f"rep{abs(hash(str(tmp_path))) % 10**9}"
    database.execute(f"CREATE PUBLICATION {name} FOR TABLE items, pairs, uuids, bare")
    with new_schema(kind, server, f"w{abs(hash(request.node.nodeid)):x}") as warehouse:
        replicator = Replicator(
            tmp_path, name, connection, RULES, target=warehouse.target, warehouse=warehouse.connection
        )

        def statement(text: str) -> Any:
            text = text.replace("v) VALUES", "v, _cdc_order) VALUES").replace("'extra')", "'extra', '0')")  # NOT NULL
            return warehouse.execute(text.format(**{table: f"{warehouse.schema}.{table}" for table in FOUND}))

        cured(Planted(replicator, database, statement), *FOUND)


@pytest.mark.nightly
def test_what_cannot_be_repaired_has_a_reason(planted: Planted) -> None:
    planted.statement("DELETE FROM {bare} WHERE v = 'v7'")
    bare = planted.verified("bare")["bare"].detail
    assert (bare["differing"], bare.get("repaired")) == (1, None)
    assert bare["not_repaired"].startswith("the table has no key")
    planted.statement("INSERT INTO {uuids} SELECT * FROM {uuids} WHERE id = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'")
    uuids = planted.verified("uuids")["uuids"].detail
    assert (uuids["differing"], uuids["repaired"]) == (1, 0)
    assert uuids["not_repaired"].startswith("1 keys still differ after the repair, such as c4ca4238")


@pytest.mark.nightly
def test_a_repair_that_fails_anywhere_is_completed_by_the_next_comparison(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    monkeypatch.setenv(TOKEN, str(token))
    for name, differing in (("before_report", 2), ("before_merge", 2), ("after_merge", 0)):
        planted.statement("UPDATE {uuids} SET v = 'damaged' WHERE id = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'")
        planted.statement("DELETE FROM {uuids} WHERE id = 'c81e728d-9d4c-2f63-6f06-7f89cc14862c'")
        token.touch()
        monkeypatch.setenv(ARMED, f"repair.{name}=raise:TargetUnavailable")
        assert planted.run("uuids")["uuids"].outcome is Outcome.FAILING
        assert not token.exists(), "the failpoint was reached"
        found = planted.verified("uuids")["uuids"].detail
        assert (found["differing"], found.get("repaired", 0)) == (differing, differing)


@contextmanager
def writing(database: Database) -> Iterator[None]:
    """Rows change in the block."""
    dsn, stop = f"{database.info.dsn} password={database.info.password}", threading.Event()
    writer = threading.Thread(target=_write, args=(dsn, stop))
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def _write(dsn: str, stop: threading.Event) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        number = 100
        while not stop.wait(0.01):
            number += 1
            connection.execute("UPDATE items SET v = %s WHERE id = %s", [f"w{number}", 1_900 + number % 1_000])
            connection.execute("INSERT INTO items VALUES (%s, 'new', 0, now())", [100_000 + number])
            connection.execute("DELETE FROM items WHERE id = %s", [3_000 + number % 1_000])
            connection.execute("UPDATE uuids SET v = v || 'w' WHERE id = md5(%s)::uuid", [str(number % 200 + 50)])
