"""Every statement that MariaDB allows on a table with rows: the copy is equal, or stopped with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.spark.pipelines.polling.pipeline import definition
from tests.spark.pipelines.schema_changes.mariadb_statements import CASES
from tests.spark.pipelines.schema_changes.statements import Case, StatementsPipeline, Truth, chosen, parameters

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DATABASE = "statements"
COLUMNS = (
    "SELECT column_name, data_type FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s AND COALESCE(generation_expression, '') = ''"
    " ORDER BY ordinal_position"
)
Server: TypeAlias = "pymysql.Connection[Any]"
IN_EVERY_RUN = {
    ("two columns swap their names", True),
    ("drop and add again in one statement", False),
    ("varchar shorter, and cut", False),
    ("a new member before", False),
    ("rebuilt", True),
    ("a partition is truncated", True),
}


@dataclass(kw_only=True)
class MariadbPipeline(StatementsPipeline):
    info: ConnectionInfo
    server: Server

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.info)

    def truth(self, table: str) -> Truth:
        with self.server.cursor() as cursor:
            cursor.execute(COLUMNS, (DATABASE, table))
            kinds = dict(cursor.fetchall())
            cursor.execute(f"SELECT {', '.join(f'`{name}`' for name in kinds)} FROM `{table}`")
            rows = (tuple(map(_text, row, kinds.values())) for row in cursor.fetchall())
            return list(kinds), Counter(rows)


def _text(value: Any, kind: str) -> str | None:
    """A timestamp has a time zone, and so has its copy."""
    zone = "+00:00" if kind == "timestamp" else ""
    return None if value is None else f"{value}{zone}"


@pytest.fixture(scope="module")
def pipeline(
    mariadb: EmbeddedMariaDB,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[MariadbPipeline]:
    folder, tables = tmp_path_factory.mktemp("statements"), chosen(request)
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password)
    with pymysql.connect(
        host=mariadb.host,
        port=mariadb.port,
        user=mariadb.user,
        password=mariadb.password,
        autocommit=True,
        init_command="SET time_zone = '+00:00'",
    ) as server:

        def execute(table: str, statements: tuple[str, ...]) -> None:
            with server.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement.replace("{t}", table))

        execute("", (f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", f"USE {DATABASE}"))
        for case, busy in tables:
            execute(case.table(busy), case.make)
        rules = [TableRule(f"{DATABASE}.{case.table(busy)}") for case, busy in tables]
        made = definition(folder, "mysql", {"databases": (DATABASE,)}, rules)
        pipeline = MariadbPipeline(folder, spark, made, DATABASE, info=info, server=server)
        pipeline.run_cases(tables, execute)
        yield pipeline
        execute("", (f"DROP DATABASE {DATABASE}",))


@pytest.mark.parametrize(("case", "busy"), parameters(CASES, IN_EVERY_RUN))
def test_the_copy_equals_the_source_or_is_stopped_with_a_reason(
    pipeline: MariadbPipeline, case: Case, busy: bool
) -> None:
    pipeline.check_case(case, busy)


@pytest.mark.nightly
def test_a_stopped_table_equals_the_source_after_a_resync(pipeline: MariadbPipeline) -> None:
    assert pipeline.resynced() == {}
