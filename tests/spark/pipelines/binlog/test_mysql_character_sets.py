"""Texts in the character sets of MariaDB, in whole runs of both engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Server: TypeAlias = "pymysql.Connection[Any]"
CHARSETS = ("sjis", "euckr", "koi8u")
SAMPLES = ("C:\\temp", "똠방각하 샾", "• пункт")


@pytest.fixture
def server(mariadb: EmbeddedMariaDB) -> Iterator[Server]:
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        sql(connection, "CREATE DATABASE texts CHARACTER SET utf8mb4", "USE texts", "SET sql_mode = ''")
        columns = ", ".join(f"of_{name} varchar(50) CHARACTER SET {name}" for name in CHARSETS)
        sql(connection, f"CREATE TABLE t (id int PRIMARY KEY, {columns})", "CREATE TABLE other (id int PRIMARY KEY)")
        yield connection
        sql(connection, "DROP DATABASE texts")


def sql(server: Server, *statements: str, values: tuple[str, ...] | None = None) -> None:
    with server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, values)


@pytest.fixture(params=EngineMode)
def texts(
    tmp_path: Path, server: Server, mariadb: EmbeddedMariaDB, spark: SparkSession, request: pytest.FixtureRequest
) -> PollingPipeline:
    names = ("id", *(f"of_{name}" for name in CHARSETS))

    def truth(table: str) -> Rows:
        columns = ["id"] if table == "texts.other" else names
        with server.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
            return {row[0]: dict(zip(columns, row, strict=True)) for row in cursor.fetchall()}

    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    rules = [TableRule("texts.t"), TableRule("texts.other")]
    made = definition(tmp_path, "mysql", {"databases": ("texts",)}, rules)
    made = replace(made, spark=replace(made.spark, engine=request.param))
    return PollingPipeline(tmp_path, spark, made, info, "id", truth)


def test_copies_and_windows_have_the_texts_of_the_server(texts: PollingPipeline, server: Server) -> None:
    insert = "INSERT INTO t VALUES (1, %s, %s, %s)"
    sql(server, insert, values=SAMPLES)
    texts.run_successfully()
    sql(server, insert.replace("1", "2"), values=SAMPLES)
    sql(server, "INSERT INTO t (id, of_sjis) VALUES (3, X'433a815f74656d70')")
    texts.run_successfully()
    assert texts.differences() == []
    assert texts.rows("texts.t")[2] == {**texts.truth("texts.t")[1], "id": 2} | _technical(texts)
    assert texts.rows("texts.t")[3]["of_sjis"] == "C:\\temp"


def _technical(texts: PollingPipeline) -> dict[str, Any]:
    return {name: value for name, value in texts.rows("texts.t")[2].items() if name.startswith("_cdc")}


@pytest.mark.parametrize("before_the_copy", [True, False])
def test_a_code_without_a_character_blocks_its_table_in_words_and_is_not_written(
    texts: PollingPipeline, server: Server, before_the_copy: bool
) -> None:
    if not before_the_copy:
        texts.run_successfully()
    sql(server, "INSERT INTO t (id, of_sjis) VALUES (7, X'618540')", "INSERT INTO other VALUES (1)")
    run = texts.run()
    rows = texts.replicator().state.tables(texts.definition.name)
    assert not run.green and rows["texts.t"].state is TableState.BLOCKED
    assert "a code that the character set sjis has no character for" in str(run.problems)
    assert texts.rows("texts.other").keys() == {1}
    if not before_the_copy:
        assert texts.rows("texts.t") == {}
