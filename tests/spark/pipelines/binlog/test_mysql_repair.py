"""MariaDB: rows that differ are found by its own sums, in one snapshot, and repaired while rows change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableResult
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, TableRule, Target
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, spark_settings
from spark_jobs.runtime.sessions import new_session
from tests.mariadb import IS_MYSQL, give_md5, series
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.binlog.test_mysql_pipeline import Server, sql
from tests.spark.pipelines.polling.pipeline import PollingPipeline, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ITEMS = 3_000
COLUMNS = (
    "id int unsigned zerofill PRIMARY KEY, v varchar(40), price decimal(10,4), big bigint unsigned, day date,"
    " at datetime(3), seen timestamp(6) NULL, flag bit(1), raw varbinary(8), fixed binary(4), t time(2), y year,"
    f" e enum('a', 'b'), tiny tinyint, u {'char(36)' if IS_MYSQL else 'uuid'}, `odd % name` text"
)
VALUES = (
    "seq, concat('ü', seq), seq / 7, 18446744073709551615 - seq, date '2024-02-29' + interval seq day,"
    " '2026-01-02 03:04:05.5', '2026-01-02 03:04:05.123456', seq % 2, unhex('00ff'), 'ab', '-12:30:00.5', 2026,"
    " if(seq % 3, 'a', NULL), -seq % 100, uuid(), ''"
)
RULES = [
    TableRule("repair.items", where=(Condition("v", Comparison.NOT_EQUAL, "left % out"),)),
    TableRule("repair.words", history=History.SCD2, history_target="words_history"),
]

RULED = [rule.source for rule in RULES]


@pytest.fixture
def server(mariadb: EmbeddedMariaDB) -> Iterator[Server]:
    with connected(mariadb) as connection:
        give_md5(connection)
        sql(connection, "CREATE DATABASE repair CHARACTER SET utf8mb4", "USE repair")
        sql(connection, f"CREATE TABLE items ({COLUMNS})", f"INSERT INTO items SELECT {VALUES} FROM {series(ITEMS)}")
        sql(connection, "INSERT INTO items (id, v) VALUES (100000, 'left % out')")
        sql(connection, "CREATE TABLE words (w varchar(20), n int, v int, PRIMARY KEY (w, n))")
        sql(connection, f"INSERT INTO words SELECT concat(char(65 + seq % 26), 'é'), seq, seq FROM {series(900)}")
        yield connection
        sql(connection, "DROP DATABASE repair")


@contextmanager
def connected(mariadb: EmbeddedMariaDB, **more: Any) -> Iterator[Server]:
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    with pymysql.connect(**login, autocommit=True, **more) as connection:
        yield connection


@dataclass
class RepairPipeline(PollingPipeline):
    database: Database | None = None

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.connection, self.database.connection if self.database else ConnectionInfo())


@pytest.fixture(params=["delta", "iceberg", "postgres", "mysql"])
def shop(
    tmp_path: Path, server: Server, mariadb: EmbeddedMariaDB, spark: SparkSession, request: pytest.FixtureRequest
) -> Iterator[RepairPipeline]:
    kind, info = request.param, ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    with ExitStack() as stack:
        database = None
        if kind in ("postgres", "mysql"):
            of_target = mariadb if kind == "mysql" else request.getfixturevalue("postgres")
            database = stack.enter_context(new_schema(kind, of_target, "repaired"))
        copied = definition(tmp_path, "mysql", {"databases": ("repair",)}, RULES)
        copied = replace(copied, target=database.target if database else Target(kind, f"{tmp_path}/lake"))
        made = RepairPipeline(tmp_path, spark, copied, info, "id", lambda _: {}, database)
        made.run_successfully()
        made.run_until_idle()
        yield made


def damage(shop: RepairPipeline, *statements: str) -> None:
    """In a database each row has an order."""
    tables = {table: shop.target(f"repair.{table}") for table in ("items", "words")}
    if shop.database:
        names = {table: f"{shop.database.schema}.{name}" for table, name in tables.items()}
        shop.database.execute(*(text.format(**names, order=", _cdc_order", zero=", '0'") for text in statements))
        return
    session, target = new_session(shop.spark), shop.replicator().targets.only
    names = {table: target.locate(name) for table, name in tables.items()}
    if shop.definition.target.type == "delta":
        names = {table: f"delta.`{location}`" for table, location in names.items()}
    else:
        for name, value in spark_settings(catalog_location(shop.definition.target, shop.secrets.target)).items():
            session.conf.set(name, value)
    for text in statements:
        session.sql(text.format(**names, order="", zero=""))


def compared(shop: RepairPipeline, **arguments: Any) -> dict[str, TableResult]:
    shop.record_command(CommandKind.VERIFY, **arguments)
    return shop.results(shop.run_successfully(), "verify")


@pytest.mark.nightly
def test_rows_that_differ_are_repaired_while_rows_change(
    shop: RepairPipeline, server: Server, mariadb: EmbeddedMariaDB
) -> None:
    damage(
        shop,
        "UPDATE {items} SET price = 1, seen = NULL WHERE id = 17",
        "DELETE FROM {items} WHERE id IN (1, 2999)",
        "INSERT INTO {items} (id, v{order}) VALUES (70000, 'extra'{zero})",
        "UPDATE {words} SET v = -1 WHERE n = 30",
        "INSERT INTO {words} (w, n, v{order}) VALUES ('zé', 5000, 1{zero})",
    )
    with writing(mariadb):
        found = compared(shop, repair=True)
        again = compared(shop)
    assert {name: (one.detail["differing"], one.detail.get("repaired")) for name, one in found.items()} == {
        "repair.items": (4, 4),
        "repair.words": (2, 2),
        "repair.words:history": (0, None),
    }, found
    assert not any(one.detail["inexact"] for one in found.values())
    assert found["repair.items"].detail["rows_read"] < ITEMS / 2
    assert found["repair.words:history"].detail["rows_read"] == 0, "its sums are the server's too"
    assert [one.detail for one in again.values() if not one.detail["identical"]] == []


@pytest.mark.nightly
def test_all_rows_are_compared_in_turns_by_the_schedule_and_repaired(shop: RepairPipeline) -> None:
    damage(shop, "UPDATE {items} SET tiny = 101 WHERE id IN (2, 1500, 2998)", "DELETE FROM {words} WHERE n = 500")
    verify = Verify(timedelta(microseconds=1), OnDifference.ON, sample=0.4)
    shop.definition = replace(shop.definition, verify=verify)
    runs = [shop.results(shop.run_successfully(), "verify") for _ in range(3)]
    repaired = {table: [run[table].detail.get("repaired", 0) for run in runs] for table in RULED}
    assert repaired["repair.items"] == [1, 1, 1]
    assert sum(repaired["repair.words"]) == 1
    assert all(run["repair.items"].detail["source_rows"] < ITEMS for run in runs)
    rows = shop.replicator().state.tables("polled")
    assert all(row.verified and row.verified.cured and row.verified.sampled for row in rows.values())
    shop.definition = replace(shop.definition, verify=Verify())
    assert all(one.detail["identical"] for one in compared(shop).values())


@contextmanager
def writing(mariadb: EmbeddedMariaDB) -> Iterator[None]:
    """Rows change in the block."""
    stop = threading.Event()

    def write() -> None:
        with connected(mariadb, database="repair") as connection:
            number = 0
            while not stop.wait(0.01):
                number += 1
                sql(connection, f"UPDATE items SET v = 'w{number}' WHERE id = {100 + number % 2000}")
                sql(connection, f"INSERT INTO words VALUES ('new', {10_000 + number}, 0)")
                sql(connection, f"DELETE FROM words WHERE n = {100 + number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
