"""Statements on polled tables of both servers: the copy is equal, or stopped with a reason."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults.dag_run import DagRun
from tests.spark.pipelines.polling.pipeline import definition
from tests.spark.pipelines.schema_changes.polled_statements import MARIADB_CASES, POSTGRES_CASES
from tests.spark.pipelines.schema_changes.statements import Case, Chosen, StatementsPipeline, Truth, chosen, parameters

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE = "polled_statements"
CHAR = 1042
"""The oid of PostgreSQL's type ``char(n)``."""
OPTIONS: dict[str, Any] = {"timestamp_column": "updated_at", "commit_latency": 0.5, "timestamp_latency": 1.0}
IN_EVERY_RUN = {
    ("swapped", True),
    ("added with a constant", False),
    ("other values", False),
    ("vacuum full", True),
    ("dropped and added", False),
    ("a member less", False),
    ("rebuilt", True),
}


@dataclass(kw_only=True)
class PolledPipeline(StatementsPipeline):
    """``fetch`` returns names and rows of a query."""

    info: ConnectionInfo
    fetch: Callable[[str], tuple[list[str], list[tuple[Any, ...]]]]

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info)

    def execute(self, dag_run: DagRun) -> DagRun:
        """Waits until the writes are old enough, and the interval before has left the overlap."""
        time.sleep(2)
        return super().execute(dag_run)

    def truth(self, table: str) -> Truth:
        names, rows = self.fetch(f"SELECT * FROM {self.schema}.{table}")
        kept = [name for name in names if name != "updated_at"]
        texts = (tuple(_text(value) for name, value in zip(names, row, strict=True) if name in kept) for row in rows)
        return kept, Counter(texts)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def chosen_of(request: pytest.FixtureRequest, cases: Sequence[Case]) -> Chosen:
    return [(case, busy) for case, busy in chosen(request) if case in cases]


def run_pipeline(
    folder: Path, spark: SparkSession, schema: str, driver: str, info: ConnectionInfo, tables: Chosen,
    execute: Callable[[str, tuple[str, ...]], None], fetch: Callable[[str], tuple[list[str], list[tuple[Any, ...]]]],
) -> PolledPipeline:  # fmt: skip
    for case, busy in tables:
        execute(case.table(busy), case.make)
    rules = [TableRule(f"{schema}.{case.table(busy)}") for case, busy in tables]
    made = definition(folder, "jdbc_poll", {**OPTIONS, "driver": driver, "schemas": (schema,)}, rules)
    pipeline = PolledPipeline(folder, spark, made, schema, info=info, fetch=fetch)
    pipeline.run_cases(tables, execute)
    return pipeline


@pytest.fixture(scope="module")
def of_postgres(
    postgres: EmbeddedPostgres,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PolledPipeline]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
    info = ConnectionInfo("db", postgres.host, postgres.port, postgres.user, postgres.password, schema=DATABASE)
    with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:

        def execute(table: str, statements: tuple[str, ...]) -> None:
            for statement in statements:
                connection.execute(statement.replace("{t}", table).encode())

        def fetch(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
            cursor = connection.execute(query.encode())
            columns = cursor.description or ()
            # A cast takes the blanks off a char.
            texts = (f"rpad({one.name}::text, 10)" if one.type_code == CHAR else f"{one.name}::text" for one in columns)
            names = [column.name for column in columns]
            return names, connection.execute(query.replace("*", ", ".join(texts)).encode()).fetchall()

        tables = chosen_of(request, POSTGRES_CASES)
        driver = "postgresql+psycopg"
        yield run_pipeline(tmp_path_factory.mktemp("polled"), spark, "public", driver, info, tables, execute, fetch)
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module")
def of_mariadb(
    mariadb: EmbeddedMariaDB,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PolledPipeline]:
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, schema=DATABASE)
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as server:

        def fetch(query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
            with server.cursor() as cursor:
                cursor.execute(query)
                return [one[0] for one in cursor.description], list(cursor.fetchall())

        def execute(table: str, statements: tuple[str, ...]) -> None:
            for statement in statements:
                with server.cursor() as cursor:
                    cursor.execute(statement.replace("{t}", table))

        execute("", (f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}"))
        tables = chosen_of(request, MARIADB_CASES)
        driver = "mysql+pymysql"
        yield run_pipeline(tmp_path_factory.mktemp("polled"), spark, DATABASE, driver, info, tables, execute, fetch)
        execute("", (f"DROP DATABASE {DATABASE}",))


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "busy"), parameters(POSTGRES_CASES, IN_EVERY_RUN))
def test_the_copy_of_postgresql_equals_the_source_or_is_stopped(
    of_postgres: PolledPipeline, case: Case, busy: bool
) -> None:
    of_postgres.check_case(case, busy)


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "busy"), parameters(MARIADB_CASES, IN_EVERY_RUN))
def test_the_copy_of_mariadb_equals_the_source_or_is_stopped(
    of_mariadb: PolledPipeline, case: Case, busy: bool
) -> None:
    of_mariadb.check_case(case, busy)


@pytest.mark.nightly
def test_a_stopped_table_equals_the_source_after_a_resync(
    of_postgres: PolledPipeline, of_mariadb: PolledPipeline
) -> None:
    assert of_postgres.resynced() == {} and of_mariadb.resynced() == {}
