"""MariaDB by its binlog, end to end: copies beside writers, windows, merges, a truncate, holes, comparisons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.faults.worker import request
from tests.mariadb import give_md5, series
from tests.model.seeds import seed
from tests.spark.pipelines.hidden_columns import HiddenColumns, hashed
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SEED = seed()
NAMES = ("id", "n", "word", "price", "at")
Server: TypeAlias = "pymysql.Connection[Any]"


@pytest.fixture
def server(mariadb: EmbeddedMariaDB) -> Iterator[Server]:
    """A session that commits each statement, in a database of the test's own with two tables of 30 rows."""
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        give_md5(connection)
        sql(connection, "CREATE DATABASE binlog CHARACTER SET utf8mb4", "USE binlog")
        for name in ("a", "b"):
            sql(
                connection,
                f"CREATE TABLE {name} (id int PRIMARY KEY, n bigint unsigned, word varchar(40), price decimal(10,2), "
                "at datetime(6))",
                f"INSERT INTO {name} SELECT seq, seq, 'old', seq / 7, '2026-01-02 03:04:05.5' FROM {series(30)}",
            )
        yield connection
        sql(connection, "DROP DATABASE binlog")


@pytest.fixture
def shop(tmp_path: Path, server: Server, mariadb: EmbeddedMariaDB, spark: SparkSession) -> PollingPipeline:
    """Both tables are copied and up to date."""

    def truth(table: str) -> Rows:
        with server.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(NAMES)} FROM {table}")
            return {row[0]: dict(zip(NAMES, row, strict=True)) for row in cursor.fetchall()}

    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    rules = [TableRule("binlog.a"), TableRule("binlog.b")]
    made = PollingPipeline(
        tmp_path, spark, definition(tmp_path, "mysql", {"databases": ("binlog",)}, rules), info, "id", truth
    )
    made.run_successfully()
    assert made.differences() == []
    return made


def sql(server: Server, *statements: str) -> None:
    with server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def write(server: Server, chance: random.Random, times: int) -> None:
    for _ in range(times):
        table, one, other = chance.choice("ab"), chance.randint(1, 40), chance.randint(1, 40)
        sql(
            server,
            "BEGIN",
            f"REPLACE INTO {table} VALUES ({one}, {chance.randrange(1 << 64)}, 'ü{chance.random()}', NULL, NULL)",
            f"UPDATE IGNORE {table} SET id = {other + 40}, price = price + 1 WHERE id = {other}",
            f"DELETE FROM {chance.choice('ab')} WHERE id = {chance.randint(1, 90)}",
            chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]),
        )


def test_copies_follow_every_transaction_and_a_run_without_changes_starts_no_job(
    shop: PollingPipeline, server: Server
) -> None:
    chance = random.Random(SEED)
    for _ in range(3):
        write(server, chance, 25)
        shop.run_successfully()
        assert shop.differences() == [], f"CDC_SEED={SEED}"
    sql(server, "TRUNCATE TABLE a", "INSERT INTO a (id) VALUES (5)")
    shop.run_successfully()
    assert shop.differences() == [] and len(shop.rows("binlog.a")) == 1
    assert set(shop.run_successfully().states) <= {"open_window", "close_window"}


def test_a_replaced_table_is_copied_again_and_the_other_table_continues(shop: PollingPipeline, server: Server) -> None:
    sql(server, "RENAME TABLE a TO gone", "CREATE TABLE a LIKE gone", "INSERT INTO a (id, word) VALUES (7, 'new')")
    sql(server, "UPDATE b SET word = 'later' WHERE id = 3")
    shop.run()
    shop.run()
    assert shop.rows("binlog.b")[3]["word"] == "later"
    request(shop.replicator(), CommandKind.RESYNC, {"tables": ["binlog.a"], "key": "again",
                                                    "arguments": {"approve_deletes": True}})  # fmt: skip
    shop.run_successfully()
    shop.run_until_idle()
    assert shop.differences() == []
    assert shop.control("binlog.a").state.name is TableState.REPLICATING


def test_verify_compares_at_the_position_of_a_snapshot(shop: PollingPipeline, server: Server) -> None:
    write(server, random.Random(SEED), 10)
    request(shop.replicator(), CommandKind.VERIFY, {"tables": ["binlog.a", "binlog.b"], "key": "v"})
    results = shop.results(shop.run_successfully(), "verify")
    assert all(one.detail["identical"] and not one.detail["inexact"] for one in results.values()), results


@pytest.mark.nightly
def test_hidden_columns_follow_every_transaction(
    shop: PollingPipeline, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = HiddenColumns(
        shop,
        shop.truth,
        lambda row: {
            "no": hashed(row["id"]),
            "n": row["n"],
            "word": hashed(row["word"]),
            "price": row["price"],
            "at": row["at"] and "****",
        },
        key="no",
        clear="ü",
    )
    settings = Columns(
        hash=("id", "word"), mask={"at": 0}, cast={"price": "decimal(14,4)", "n": "decimal(22,2)"}, rename={"id": "no"}
    )
    hidden.hide(settings, monkeypatch)
    assert hidden.differences() == []
    write(server, random.Random(SEED), 25)
    shop.run_successfully()
    assert (hidden.differences(), hidden.clear_windows()) == ([], []), f"CDC_SEED={SEED}"
    hidden.verify()
