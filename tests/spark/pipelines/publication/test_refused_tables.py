"""Tables of PostgreSQL that cannot be copied, and a role with rights on some columns: each run says why, and the other
tables go on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"


@dataclass(kw_only=True)
class LimitedPipeline(Pipeline):
    server: EmbeddedPostgres
    database: str

    @property
    def secrets(self) -> Secrets:
        server = self.server
        return Secrets(ConnectionInfo("db", server.host, server.port, self.database, "sesame-42", self.database))

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def states(self) -> dict[str, tuple[TableState, str]]:
        rows = self.replicator().state.tables(self.definition.name)
        return {table.removeprefix("public."): (row.state, row.reason) for table, row in rows.items()}


@pytest.fixture
def limited(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LimitedPipeline]:
    """Read by a role of the database's name. The parameter is the encoding of the database."""
    encoding = getattr(request, "param", "UTF8")
    name = f"limited{next(NUMBERS)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode())
        definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": "cdc"}),
            target=Target("delta", f"{tmp_path}/lake"),
            tables=(TableRule("public.*", columns=Columns(exclude=("secret",))),),
            staging=Staging(f"{tmp_path}/staging"),
        )
        made = LimitedPipeline(tmp_path, spark, definition, server=postgres, database=name)
        made.sql(
            f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD 'sesame-42'",
            "CREATE TABLE t (id int PRIMARY KEY, name text, secret text)",
            "INSERT INTO t SELECT i, 'a', 'hidden-value' FROM generate_series(1, 3) i",
            f"GRANT SELECT (id, name) ON t TO {name}",
            "CREATE VIEW v AS SELECT id FROM t",
            "CREATE PUBLICATION cdc FOR ALL TABLES",
        )
        yield made
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        server.execute(f"DROP ROLE {name}".encode())


def hidden_values(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and b"hidden-value" in path.read_bytes()]


@pytest.mark.nightly
@pytest.mark.parametrize("engine", EngineMode)
def test_a_role_with_rights_on_some_columns_copies_streams_and_compares(
    limited: LimitedPipeline, engine: EngineMode
) -> None:
    limited.definition = replace(limited.definition, spark=replace(limited.definition.spark, engine=engine))
    limited.run_successfully()
    assert limited.states()["v"] == (TableState.NEW, "public.v is a view, which is not copied")
    limited.sql("INSERT INTO t VALUES (4, 'b', 'hidden-value')", "DELETE FROM t WHERE id = 1")
    limited.run_successfully()
    expected = {number: {"id": number, "name": "b" if number == 4 else "a"} for number in (2, 3, 4)}
    assert limited.copied_rows("public.t", "id", "id", "name") == expected
    limited.record_command(CommandKind.VERIFY, "public.t")
    (compared,) = limited.results(limited.run_successfully(), "verify").values()
    assert compared.detail["identical"] and hidden_values(limited.folder) == []


def test_a_new_column_without_the_right_blocks_its_table_before_a_value_is_read(limited: LimitedPipeline) -> None:
    limited.sql("CREATE TABLE other (id int PRIMARY KEY)", f"GRANT SELECT ON other TO {limited.database}")
    limited.run_successfully()
    limited.sql("ALTER TABLE t ADD late text", "INSERT INTO t VALUES (5, 'c', '', 'hidden-value')")
    limited.sql("INSERT INTO other VALUES (1)")
    run = limited.run()
    state, reason = limited.states()["t"]
    assert not run.green and state is TableState.BLOCKED and reason.endswith("lacks SELECT on public.t")
    assert limited.copied_rows("public.other", "id", "id") == {1: {"id": 1}}
    assert hidden_values(limited.folder) == []


@pytest.mark.parametrize("limited", ["SQL_ASCII"], indirect=True)
def test_texts_without_an_encoding_are_not_copied(limited: LimitedPipeline) -> None:
    run = limited.run()
    assert not run.green and "SRC023" in str(run.problems)
    assert limited.states()["t"][0] is TableState.BLOCKED and hidden_values(limited.folder) == []


def test_a_generated_column_as_the_key_blocks_its_table_alone(limited: LimitedPipeline) -> None:
    limited.sql(
        "CREATE TABLE k (doc jsonb, id text GENERATED ALWAYS AS (doc->>'id') STORED PRIMARY KEY)",
        "CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY)",
        f"GRANT SELECT ON k, fleeting TO {limited.database}",
    )
    for _ in range(2):
        run, found = limited.run(), limited.states()
        assert not run.green and found["t"][0] is TableState.REPLICATING
        assert found["k"] == (
            TableState.BLOCKED,
            "the key of public.k has a generated column, which PostgreSQL does not send",
        )
        assert found["fleeting"] == (TableState.BLOCKED, "changes of public.fleeting are not in the WAL")
        limited.sql("UPDATE t SET name = 'd'")
