"""Table ``b.c`` of schema ``a`` and table ``c`` of schema ``a.b``, side by side in one replicator: two copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.states import TableState
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.pipelines.publication.test_refused_tables import SLOTS

pytestmark = [pytest.mark.jvm, pytest.mark.server]

ONE, TWO = NAMES = ('a."b.c"', '"a.b".c')
Sql = Callable[[str], Any]


@dataclass(kw_only=True)
class Twins(Pipeline):
    """``run_sql``: ``{0}`` and ``{1}`` are the two tables in SQL."""

    connection: ConnectionInfo
    run_sql: Sql
    in_sql: tuple[str, str]

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.connection)

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.run_sql(statement.format(*self.in_sql))

    def words(self) -> list[dict[int, Any]]:
        return [{key: row["word"] for key, row in self.copied_rows(name, "id").items()} for name in NAMES]

    def states(self) -> dict[str, TableState]:
        return {name: row.state for name, row in self.replicator().state.tables(self.definition.name).items()}


@pytest.fixture(params=["postgres", "mariadb"])
def twins(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Twins]:
    server = request.getfixturevalue(request.param)
    kind, options = ("postgres", {"publication": "cdc"}) if request.param == "postgres" else ("mysql", {})
    definition = Definition(
        name="twins",
        source=Source(kind, "source", options=options or {"databases": ("a", "a.b")}),
        target=Target("delta", f"{tmp_path}/lake"),
        tables=(TableRule(ONE), TableRule("*", target="{schema}__{table}")),
        staging=Staging(f"{tmp_path}/staging"),
    )
    database = "twins" if kind == "postgres" else ""
    info = ConnectionInfo("db", server.host, server.port, server.user, server.password, database)
    if kind == "postgres":
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute("CREATE DATABASE twins")
            with psycopg.connect(server.dsn("twins"), autocommit=True) as connection:
                connection.execute('CREATE SCHEMA a; CREATE SCHEMA "a.b"; CREATE PUBLICATION cdc FOR ALL TABLES')
                yield made(
                    Twins(tmp_path, spark, definition, connection=info, run_sql=connection.execute, in_sql=NAMES)
                )
            admin.execute(SLOTS, ["twins"])
            admin.execute("DROP DATABASE twins WITH (FORCE)")
        return
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE a")
        cursor.execute("CREATE DATABASE `a.b`")
        in_sql = ("a.`b.c`", "`a.b`.c")
        yield made(Twins(tmp_path, spark, definition, connection=info, run_sql=cursor.execute, in_sql=in_sql))
        cursor.execute("DROP DATABASE a")
        cursor.execute("DROP DATABASE `a.b`")


def made(twins: Twins) -> Twins:
    twins.sql(
        "CREATE TABLE {0} (id int PRIMARY KEY, word varchar(20))",
        "CREATE TABLE {1} (id int PRIMARY KEY, word varchar(20))",
        "INSERT INTO {0} VALUES (1, 'one')",
        "INSERT INTO {1} VALUES (1, 'two')",
    )
    return twins


def identical(twins: Twins) -> dict[str, Any]:
    twins.record_command(CommandKind.VERIFY, *NAMES)
    results = twins.results(twins.run_successfully(), "verify")
    return {name: result.detail["identical"] for name, result in results.items()}


@pytest.mark.nightly
def test_both_are_copied_followed_altered_truncated_and_compared_as_two_tables(twins: Twins) -> None:
    twins.run_until_idle()
    assert twins.states() == dict.fromkeys(NAMES, TableState.REPLICATING)
    assert [twins.target(name) for name in NAMES] == ["a_b_c", "a_b__c"]
    assert twins.words() == [{1: "one"}, {1: "two"}]

    twins.sql("INSERT INTO {0} VALUES (2, 'first')", "UPDATE {1} SET word = 'second' WHERE id = 1")
    twins.run_until_idle()
    assert twins.words() == [{1: "one", 2: "first"}, {1: "second"}]

    twins.sql("ALTER TABLE {1} ADD more int", "INSERT INTO {1} VALUES (3, 'third', 7)", "TRUNCATE TABLE {0}")
    twins.sql("INSERT INTO {0} VALUES (4, 'fourth')")
    twins.run_until_idle()
    assert twins.words() == [{4: "fourth"}, {1: "second", 3: "third"}]
    assert [len(next(iter(twins.copied_rows(name, "id").values()))) for name in NAMES] == [3, 4]
    assert identical(twins) == dict.fromkeys(NAMES, True)

    twins.sql("DROP TABLE {1}", "INSERT INTO {0} VALUES (5, 'fifth')")
    twins.run()
    assert twins.words()[0] == {4: "fourth", 5: "fifth"}
    assert twins.states()[ONE] is TableState.REPLICATING and twins.states()[TWO] is not TableState.REPLICATING
