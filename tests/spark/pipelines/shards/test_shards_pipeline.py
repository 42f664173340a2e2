"""The same table in several schemas of PostgreSQL, replicated into one target table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.examine import examine
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.delta_tables import read
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
EU, US, AP = "shop_eu.orders", "shop_us.orders", "shop_ap.orders"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"


@dataclass(kw_only=True)
class ShardsPipeline(Pipeline):
    server: EmbeddedPostgres
    database: str
    warehouse: Database | None = None

    @property
    def secrets(self) -> Secrets:
        server = self.server
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=self.database)
        return Secrets(info, target=self.warehouse.connection if self.warehouse else ConnectionInfo())

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def create(self, schema: str) -> None:
        self.sql(
            f"CREATE SCHEMA {schema}",
            f"CREATE TABLE {schema}.orders (id int PRIMARY KEY, item text)",
            f"INSERT INTO {schema}.orders VALUES (1, '{schema} 1'), (2, '{schema} 2')",
            f"ALTER PUBLICATION cdc ADD TABLE {schema}.orders",
        )

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        columns = ("region", "id", "item")
        if self.warehouse:
            return self.warehouse.rows(columns, "orders")
        found = read(DeltaTable(self.replicator().targets.only.locate("orders")), *columns)
        return sorted(tuple(row[name] for name in columns) for row in found.to_pylist())

    def state(self, table: str) -> TableState:
        return self.replicator().state.tables(self.definition.name)[table].state


@contextmanager
def shop(postgres: EmbeddedPostgres, spark: SparkSession, folder: Path, kind: str) -> Iterator[ShardsPipeline]:
    name = f"shards{next(NUMBERS)}"
    with (
        psycopg.connect(postgres.dsn(), autocommit=True) as server,
        new_schema("postgres", postgres, name) as warehouse,
    ):
        server.execute(f"CREATE DATABASE {name}".encode())
        definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": "cdc"}),
            target=Target("delta", f"{folder}/lake") if kind == "delta" else warehouse.target,
            tables=(TableRule("shop_*.orders", "orders", shard_column="region", shard_value="{schema}"),),
            staging=Staging(f"{folder}/staging"),
        )
        shop = ShardsPipeline(
            folder, spark, definition, server=postgres, database=name, warehouse=None if kind == "delta" else warehouse
        )
        shop.sql("CREATE PUBLICATION cdc")
        shop.create("shop_eu")
        shop.create("shop_us")
        yield shop
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["delta", "postgres"])
def test_source_tables_have_one_target_table_and_states_of_their_own(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Changes, a truncate, a pause, a resync, a column and a table that come later, and a comparison."""
    with shop(postgres, spark, tmp_path, kind) as pipeline:
        pipeline.sql("CREATE SCHEMA shop_xx", "CREATE TABLE shop_xx.orders (id int PRIMARY KEY, item int)")
        replicator = pipeline.replicator()
        problems = examine(pipeline.definition, replicator.source, replicator.targets).problems
        differing = [problem.where for problem in problems if problem.code == "DEF086"]
        assert differing == ["shop_xx.orders"]
        pipeline.sql("DROP SCHEMA shop_xx CASCADE")
        pipeline.run_successfully()
        eu, us = [[(f"shop_{one}", key, f"shop_{one} {key}") for key in (1, 2)] for one in ("eu", "us")]
        assert pipeline.rows == [*eu, *us]
        pipeline.sql("UPDATE shop_eu.orders SET item = 'new' WHERE id = 1", "DELETE FROM shop_us.orders WHERE id = 1")
        pipeline.record_command(CommandKind.PAUSE, US)
        pipeline.run()
        assert pipeline.rows == [("shop_eu", 1, "new"), eu[1], *us]
        assert (pipeline.state(EU), pipeline.state(US)) == (TableState.REPLICATING, TableState.PAUSED)
        pipeline.record_command(CommandKind.RESUME, US)
        pipeline.create("shop_ap")
        pipeline.sql(
            "TRUNCATE shop_eu.orders",
            "ALTER TABLE shop_us.orders ADD n int",
            "INSERT INTO shop_us.orders VALUES (3, 'c', 7)",
        )
        pipeline.run_until_idle()
        ap = [("shop_ap", key, f"shop_ap {key}") for key in (1, 2)]
        us = [us[1], ("shop_us", 3, "c")]
        assert pipeline.rows == [*ap, *us]
        pipeline.record_command(CommandKind.RESYNC, US)
        pipeline.sql("INSERT INTO shop_eu.orders VALUES (3, 'e')", "UPDATE shop_ap.orders SET id = 9 WHERE id = 2")
        pipeline.run_until_idle()
        found = [ap[0], ("shop_ap", 9, "shop_ap 2"), ("shop_eu", 3, "e"), *us]
        assert pipeline.rows == found
        pipeline.record_command(CommandKind.VERIFY, EU, US, AP)
        verified = pipeline.results(pipeline.run_successfully(), "verify")
        assert {name: (one.detail["identical"], one.detail["target_rows"]) for name, one in verified.items()} == {
            AP: (True, 2),
            EU: (True, 1),
            US: (True, 2),
        }
        assert {pipeline.state(name) for name in (EU, US, AP)} == {TableState.REPLICATING}
