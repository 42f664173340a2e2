"""Every statement that PostgreSQL allows on a table with rows: the copy is equal, or stopped with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.sandbox.postgres import EARLIER, EmbeddedPostgres
from tests.spark.pipelines.schema_changes.postgres_statements import CASES
from tests.spark.pipelines.schema_changes.statements import Case, Chosen, StatementsPipeline, Truth, chosen, parameters

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE = "statements"
PARTS = 8
GENERATED = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''"
PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"
IN_EVERY_RUN = {
    ("two columns swap their names", True),
    ("rename, and a new column under the old name", False),
    ("add with a constant", False),
    ("same type, other values", False),
    ("rename of an enum label", False),
    ("vacuum full", True),
    ("another table of the same name", False),
    ("a partition leaves and returns", True),
}


@dataclass(kw_only=True)
class PostgresPipeline(StatementsPipeline):
    server: EmbeddedPostgres

    @property
    def secrets(self) -> Secrets:
        server = self.server
        return Secrets(ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=DATABASE))

    def truth(self, table: str) -> Truth:
        name = f"{self.schema}.{table}"
        with psycopg.connect(self.server.dsn(DATABASE)) as connection:
            connection.execute("SET intervalstyle TO iso_8601; SET timezone TO 'UTC'; SET search_path TO ''")
            generated = {column for (column,) in connection.execute(GENERATED, [name])}
            only = "" if connection.execute(PARTITIONED, [name]).fetchone() == (True,) else "ONLY "
            cursor = connection.execute(f"SELECT * FROM {only}{name}".encode())
            result, named = cursor.pgresult, enumerate(column.name for column in cursor.description or ())
            assert result is not None
            copied = [(at, column) for at, column in named if column not in generated]
            rows = (tuple(text(result.get_value(row, at)) for at, _ in copied) for row in range(result.ntuples))
            return [column for _, column in copied], Counter(rows)


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@pytest.fixture(scope="module")
def pipeline(
    postgres: EmbeddedPostgres,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[PostgresPipeline]:
    with run_pipeline(postgres, spark, tmp_path_factory.mktemp("statements"), chosen(request)) as pipeline:
        yield pipeline


@contextmanager
def run_pipeline(
    postgres: EmbeddedPostgres, spark: SparkSession, folder: Path, tables: Chosen
) -> Iterator[PostgresPipeline]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:

            def execute(table: str, statements: tuple[str, ...]) -> None:
                run(connection, table, statements)

            publish(connection, tables)
            made = definition(str(folder), tables)
            pipeline = PostgresPipeline(folder, spark, made, "public", server=postgres)
            pipeline.run_cases(tables, execute)
            yield pipeline
        server.execute(SLOTS, [DATABASE])
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def publish(connection: psycopg.Connection[Any], tables: Chosen) -> None:
    for case, busy in tables:
        run(connection, case.table(busy), case.make)
    listed = ", ".join(case.table(busy) for case, busy in tables)
    connection.execute(f"CREATE PUBLICATION cdc FOR TABLE {listed} WITH (publish_via_partition_root = true)".encode())


def definition(folder: str, tables: Chosen) -> Definition:
    return Definition(
        name="statements",
        source=Source("postgres", "source", options={"publication": "cdc"}),
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(TableRule(f"public.{case.table(busy)}") for case, busy in tables),
        staging=Staging(f"{folder}/staging"),
    )


def run(connection: psycopg.Connection[Any], table: str, statements: tuple[str, ...]) -> None:
    for statement in statements:
        for one in statement.split(";"):
            connection.execute(one.replace("{t}", table).encode())


@pytest.mark.parametrize(("case", "busy"), parameters(CASES, IN_EVERY_RUN))
def test_the_copy_equals_the_source_or_is_stopped_with_a_reason(
    pipeline: PostgresPipeline, case: Case, busy: bool
) -> None:
    pipeline.check_case(case, busy)


@pytest.mark.nightly
def test_a_stopped_table_equals_the_source_after_a_resync(pipeline: PostgresPipeline) -> None:
    assert pipeline.resynced() == {}


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("major", EARLIER)
def test_every_case_on_an_earlier_version(spark: SparkSession, tmp_path: Path, major: int, part: int) -> None:
    """Cases that the version does not accept are left out. Each part of the list has a replicator of its own: a run
    ends at each statement that breaks a schema, so one replicator of the whole list needs more time than a test has."""
    tables = [(case, busy) for case in CASES[part::PARTS] if case.since <= major for busy in (False, True)]
    with EmbeddedPostgres(major=major) as postgres, run_pipeline(postgres, spark, tmp_path, tables) as pipeline:
        strange = {}
        for case, busy in tables:
            try:
                pipeline.check_case(case, busy)
            except AssertionError as error:
                strange[case.table(busy), case.name] = str(error).splitlines()[0]
        assert strange == {}
        assert pipeline.resynced() == {}
