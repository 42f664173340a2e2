"""What a target makes of schema changes of MariaDB under each policy, by the statements in the binlog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.schema_changes.statements import SAME, STOPPED, Case, alter
from tests.spark.pipelines.schema_changes.test_mariadb_statements import DATABASE, MariadbPipeline
from tests.spark.pipelines.schema_changes.test_policies import Expected, chosen_names, parameters
from tests.spark.targets_of_kinds import rows_of

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TARGET = "policies"
MAKE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, a smallint, b int NOT NULL DEFAULT 1, v varchar(20), n decimal(10,2))",
    "INSERT INTO {t} VALUES (1, 10, 100, 'v1', 1.5), (2, 20, 200, 'v2', 2.5)",
)
ROWS = ("INSERT INTO {t} (id, a) VALUES (4, 40)", "UPDATE {t} SET a = a + 1 WHERE id = 1")
FOLLOW = SchemaPolicy(rename=OnChange.APPLY, narrow=OnChange.APPLY)
STOPS = (TARGET,)
CASES = {
    "integers grow": Expected(SchemaPolicy(), alter("MODIFY a int, MODIFY b bigint NOT NULL DEFAULT 1")),
    "the key grows": Expected(SchemaPolicy(), alter("MODIFY id bigint")),
    "more digits": Expected(SchemaPolicy(), alter("MODIFY n decimal(14,2)")),
    "widening is refused": Expected(SchemaPolicy(widen=OnChange.STOP), alter("MODIFY b bigint"), STOPS),
    "rename": Expected(FOLLOW, alter("RENAME COLUMN v TO v2")),
    "rename by CHANGE, with a longer type": Expected(FOLLOW, alter("CHANGE v v2 varchar(30)")),
    "rename by CHANGE, with a wider type": Expected(
        FOLLOW, alter("CHANGE a a2 bigint"), rows=("INSERT INTO {t} (id, a2) VALUES (4, 40)",)
    ),
    "rename, twice": Expected(FOLLOW, alter("RENAME COLUMN v TO v2", "RENAME COLUMN v2 TO v3")),
    "rename of the key": Expected(
        FOLLOW, alter("RENAME COLUMN id TO number"), rows=("INSERT INTO {t} (number, a) VALUES (4, 40)",)
    ),
    "rename is refused": Expected(SchemaPolicy(), alter("RENAME COLUMN v TO v2"), STOPS),
    "drop, dropped": Expected(SchemaPolicy(drop_column=OnDrop.DROP), alter("DROP v"), gone="v"),
    "drop, without values": Expected(SchemaPolicy(drop_column=OnDrop.SET_NULL), alter("DROP v")),
}
IN_EVERY_RUN = {("integers grow", True), ("rename by CHANGE, with a wider type", True), ("rename, twice", False)}
CASE_NUMBERS = {name: number for number, name in enumerate(CASES)}


def case_of(name: str) -> Case:
    one = CASES[name]
    return Case(name, one.statements, MAKE, one.rows, number=CASE_NUMBERS[name])


@dataclass(kw_only=True)
class IntoMariadb(MariadbPipeline):
    target_schema: Database

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info, self.target_schema.connection)

    def _copy(self, table: str) -> Iterator[dict[str, Any]]:
        name = self.target(f"{DATABASE}.{table}")
        return rows_of(self.replicator().targets.only, name, self.target_schema, self.spark)


@pytest.fixture(scope="module")
def pipeline(
    mariadb: EmbeddedMariaDB,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[IntoMariadb]:
    folder = tmp_path_factory.mktemp("policies")
    tables = [(case_of(name), busy) for name, busy in chosen_names(request)]
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    with pymysql.connect(**login, autocommit=True) as server, new_schema("mysql", mariadb, TARGET) as target:  # type: ignore[arg-type]

        def execute(table: str, statements: tuple[str, ...]) -> None:
            with server.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement.replace("{t}", table))

        execute("", (f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}"))
        for case, busy in tables:
            execute(case.table(busy), case.make)
        definition = Definition(
            name=TARGET,
            source=Source("mysql", "source", options={"databases": (DATABASE,)}),
            target=target.target,
            tables=tuple(
                TableRule(f"{DATABASE}.{case.table(busy)}", schema_changes=CASES[case.name].policy)
                for case, busy in tables
            ),
            staging=Staging(f"{folder}/staging"),
        )
        info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
        made = IntoMariadb(folder, spark, definition, DATABASE, info=info, server=server, target_schema=target)
        made.run_cases(tables, execute)
        yield made
        execute("", (f"DROP DATABASE {DATABASE}",))


@pytest.mark.parametrize(("name", "busy"), parameters(CASES, IN_EVERY_RUN))
def test_the_target_follows_or_stops(pipeline: IntoMariadb, name: str, busy: bool) -> None:
    table, one = case_of(name).table(busy), CASES[name]
    expected = STOPPED if one.stopped else SAME
    assert pipeline.found[table] == expected, pipeline.row(table)
    if one.gone:
        assert one.gone not in next(iter(pipeline._copy(table)))
