"""Tables of MariaDB that cannot be copied, under a pattern: each run names them, and the other tables go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.assessments import assess_replicator
from airflow_cdc_provider.core.assessment.support import Support
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.mariadb import mariadb_only
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server, mariadb_only]

Server: TypeAlias = "pymysql.Connection[Any]"


@pytest.fixture
def server(mariadb: EmbeddedMariaDB) -> Iterator[Server]:
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        sql(connection, "CREATE DATABASE kinds CHARACTER SET utf8mb4", "USE kinds")
        for name in ("a", "b"):
            sql(connection, f"CREATE TABLE {name} (id int PRIMARY KEY, n int)", f"INSERT INTO {name} VALUES (1, 1)")
        sql(
            connection,
            "CREATE TABLE kept (id int PRIMARY KEY, n int) WITH SYSTEM VERSIONING",
            "CREATE VIEW v AS SELECT * FROM a",
            "CREATE SEQUENCE s",
        )
        yield connection
        sql(connection, "DROP DATABASE kinds")


def sql(server: Server, *statements: str) -> None:
    with server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def kinds(tmp_path: Path, server: Server, mariadb: EmbeddedMariaDB, spark: SparkSession) -> PollingPipeline:
    def truth(table: str) -> Rows:
        with server.cursor() as cursor:
            cursor.execute(f"SELECT id, n FROM {table}")
            return {row[0]: dict(zip(("id", "n"), row, strict=True)) for row in cursor.fetchall()}

    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    rules = [TableRule("kinds.*")]
    return PollingPipeline(
        tmp_path, spark, definition(tmp_path, "mysql", {"databases": ("kinds",)}, rules), info, "id", truth
    )


def states(pipeline: PollingPipeline) -> dict[str, tuple[TableState, str]]:
    rows = pipeline.replicator().state.tables(pipeline.definition.name)
    return {table.removeprefix("kinds."): (row.state, row.reason) for table, row in rows.items()}


def test_what_a_pattern_cannot_copy_is_named_and_the_rest_is_copied(kinds: PollingPipeline, server: Server) -> None:
    run = kinds.run()
    assert not run.green and "SRC151" in str(run.problems) and "kinds.a" not in str(run.problems)
    found = states(kinds)
    assert found.keys() == {"a", "b", "kept", "v", "s"}
    assert found["a"][0] is found["b"][0] is TableState.REPLICATING
    assert found["kept"][0] is TableState.BLOCKED and "earlier versions of its rows" in found["kept"][1]
    assert found["v"] == (TableState.NEW, "kinds.v is a view, which is not copied")
    assert found["s"] == (TableState.NEW, "kinds.s is a sequence, which is not copied")

    assessed = {table.table: table for table in assess_replicator(kinds.replicator()).tables}
    assert {name for name, table in assessed.items() if table.support is Support.NO} == {
        "kinds.kept",
        "kinds.v",
        "kinds.s",
    }
    assert all(assessed[name].findings for name in ("kinds.kept", "kinds.v", "kinds.s"))


def test_a_table_that_becomes_versioned_is_blocked_and_copied_again_later(
    kinds: PollingPipeline, server: Server
) -> None:
    sql(server, "DROP TABLE kept")
    kinds.run_successfully()
    sql(server, "ALTER TABLE a ADD SYSTEM VERSIONING", "UPDATE a SET n = 2", "UPDATE b SET n = 2")
    run = kinds.run()
    found = states(kinds)
    assert not run.green and found["a"][0] is TableState.BLOCKED and "earlier versions" in found["a"][1]
    assert found["b"][0] is TableState.REPLICATING
    assert kinds.copied_rows("kinds.b", "id", "id", "n") == {1: {"id": 1, "n": 2}}
    assert kinds.copied_rows("kinds.a", "id", "id", "n") == {1: {"id": 1, "n": 1}}

    sql(server, "ALTER TABLE a DROP SYSTEM VERSIONING", "INSERT INTO b VALUES (3, 3)")
    kinds.run()
    assert states(kinds)["a"][0] is TableState.BLOCKED
    kinds.record_command(CommandKind.RESYNC, "kinds.a")
    kinds.run_successfully()
    kinds.run_until_idle()
    assert kinds.copied_rows("kinds.a", "id", "id", "n") == {1: {"id": 1, "n": 2}}


def test_a_table_without_key_and_one_with_a_cast_that_the_binlog_lacks_are_blocked(
    kinds: PollingPipeline, server: Server
) -> None:
    sql(server, "DROP TABLE kept", "CREATE TABLE keyless (id int, n int)", "ALTER TABLE b MODIFY n double")
    rules = (TableRule("kinds.b", columns=Columns(cast={"n": "text"})), *kinds.definition.tables)
    kinds.definition = replace(kinds.definition, tables=rules)
    run = kinds.run()
    assert not run.green and "SRC098" in str(run.problems) and "SRC103" in str(run.problems)
    assert {table: state for table, (state, _) in states(kinds).items() if state is not TableState.NEW} == {
        "a": TableState.REPLICATING,
        "b": TableState.BLOCKED,
        "keyless": TableState.BLOCKED,
    }


def test_a_copied_table_whose_name_a_view_takes_is_blocked(kinds: PollingPipeline, server: Server) -> None:
    sql(server, "DROP TABLE kept")
    kinds.run_successfully()
    sql(server, "RENAME TABLE a TO kept", "CREATE VIEW a AS SELECT * FROM kept")
    run = kinds.run()
    assert "TBL004" in str(run.problems) and "kinds.a is a view" in str(run.problems)
    assert states(kinds)["a"] == (TableState.BLOCKED, "kinds.a is a view, which is not copied")


def test_a_table_with_columns_that_the_login_may_not_select_is_blocked_before_a_value_is_written(
    kinds: PollingPipeline, server: Server
) -> None:
    sql(
        server,
        "DROP TABLE kept",
        "CREATE TABLE t (id int PRIMARY KEY, n int, secret varchar(20))",
        "CREATE OR REPLACE USER limited@'127.0.0.1' IDENTIFIED BY 'sesame-42'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO limited@'127.0.0.1'",
        "GRANT SELECT ON a TO limited@'127.0.0.1'",
        "GRANT SELECT ON b TO limited@'127.0.0.1'",
        "GRANT SELECT ON t TO limited@'127.0.0.1'",
    )
    kinds.connection = replace(kinds.connection, login="limited", password="sesame-42")
    kinds.run_successfully()
    sql(
        server,
        "REVOKE SELECT ON t FROM limited@'127.0.0.1'",
        "GRANT SELECT (id, n) ON t TO limited@'127.0.0.1'",
        "INSERT INTO t VALUES (1, 1, 'hidden-value')",
        "UPDATE a SET n = 5",
    )
    run = kinds.run()
    assert not run.green and "SRC010" in str(run.problems)
    assert states(kinds)["t"][0] is TableState.BLOCKED
    assert kinds.copied_rows("kinds.a", "id", "id", "n") == {1: {"id": 1, "n": 5}}
    files = [path for path in kinds.folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"hidden-value" in path.read_bytes()] == []


def test_a_rule_that_names_a_view_is_a_problem_and_the_other_tables_go_on(
    kinds: PollingPipeline, server: Server
) -> None:
    kinds.definition = replace(kinds.definition, tables=(TableRule("kinds.a"), TableRule("kinds.v")))
    run = kinds.run()
    assert not run.green and "SRC150" in str(run.problems)
    assert states(kinds)["a"][0] is TableState.REPLICATING
    assert states(kinds)["v"] == (TableState.NEW, "kinds.v is a view, which is not copied")
