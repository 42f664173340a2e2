"""The same table in several schemas of PostgreSQL, replicated into one target table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.examine import examine
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.targets.iceberg.target import IcebergTarget
from tests.delta_tables import read
from tests.faults import leaving
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
EU, US, AP = "shop_eu.orders", "shop_us.orders", "shop_ap.orders"
LAKES = ("delta", "iceberg")
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
        target = self.replicator().targets.only
        if isinstance(target, IcebergTarget):
            with target.open("orders") as (_, table):
                found = table.scan(selected_fields=columns).to_arrow()
        else:
            found = read(DeltaTable(target.locate("orders")), *columns)
        return sorted(tuple(row[name] for name in columns) for row in found.to_pylist())

    def add_row(self, region: str, key: int) -> None:
        """As another client of the target."""
        values = f"(region, id, item, _cdc_order) VALUES ('{region}', {key}, 'added', '')"
        target = self.replicator().targets.only
        if self.warehouse:
            self.warehouse.execute(f"INSERT INTO {self.warehouse.schema}.orders {values}")
        elif isinstance(target, IcebergTarget):
            with target.open("orders") as (_, table):
                row = {"region": region, "id": key, "item": "added", "_cdc_order": ""}
                table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
        else:
            self.spark.sql(f"INSERT INTO delta.`{target.locate('orders')}` {values}")

    def counts(self) -> dict[str, int | None]:
        return {table: row.rows for table, row in self.replicator().state.tables(self.definition.name).items()}

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
            target=Target(kind, f"{folder}/lake") if kind in LAKES else warehouse.target,
            tables=(TableRule("shop_*.orders", "orders", shard_column="region", shard_value="{schema}"),),
            staging=Staging(f"{folder}/staging"),
        )
        shop = ShardsPipeline(
            folder, spark, definition, server=postgres, database=name, warehouse=None if kind in LAKES else warehouse
        )
        shop.sql("CREATE PUBLICATION cdc")
        shop.create("shop_eu")
        shop.create("shop_us")
        yield shop
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgres"])
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


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgres"])
def test_the_rows_of_a_source_table_are_guarded_left_and_dropped_with_their_table(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """The limit of deletes is a share of its own rows. A source table that is not listed any more leaves its rows."""
    with shop(postgres, spark, tmp_path, kind) as pipeline:
        pipeline.run_successfully()
        copied = pipeline.rows
        pipeline.add_row("shop_us", 9)
        pipeline.record_command(CommandKind.RESYNC, US)
        refused = pipeline.run()
        assert any("CPY004" in problem and "1 of 3 rows" in problem for problem in refused.problems), refused.problems
        pipeline.sql("UPDATE shop_eu.orders SET item = 'new' WHERE id = 1")
        pipeline.run()
        copied[0] = ("shop_eu", 1, "new")
        assert pipeline.rows == [*copied, ("shop_us", 9, "added")]
        pipeline.record_command(CommandKind.RESYNC, US, approve_deletes=True)
        pipeline.run_until_idle()
        assert pipeline.rows == copied
        (rule,) = pipeline.definition.tables
        pipeline.definition = replace(pipeline.definition, tables=(replace(rule, source=EU),))
        pipeline.sql("DELETE FROM shop_eu.orders WHERE id = 1", "DELETE FROM shop_us.orders WHERE id = 1")
        pipeline.run_until_idle()
        assert pipeline.rows == copied[1:] and pipeline.state(US) is TableState.DROPPED
        target = pipeline.replicator().targets.only
        assert leaving.run(pipeline, leaving.DELETE, {}) == 0  # type: ignore[arg-type]
        assert not target.state(EU, "orders").exists and not target.state(US, "orders").exists


@pytest.mark.nightly
def test_one_source_table_is_rewound_alone(postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path) -> None:
    with shop(postgres, spark, tmp_path, "delta") as pipeline:
        pipeline.run_successfully()
        for number in (1, 2):
            pipeline.sql(*(f"UPDATE shop_{one}.orders SET item = 'v{number}' WHERE id = 1" for one in ("eu", "us")))
            pipeline.run_successfully()
        rows, counts = pipeline.rows, pipeline.counts()
        assert counts == {EU: 2, US: 2}
        pipeline.record_command(CommandKind.REWIND, US, to=str(pipeline.replicator().log.sealed() - 1))
        assert pipeline.rows == [*rows[:2], ("shop_us", 1, "v1"), rows[3]]
        pipeline.sql("UPDATE shop_eu.orders SET item = 'v3' WHERE id = 1")
        pipeline.run_until_idle()
        assert pipeline.rows == [("shop_eu", 1, "v3"), *rows[1:]] and pipeline.counts() == counts
        actions = [entry.action for entry in pipeline.replicator().state.audit(pipeline.definition.name, 99)]
        assert actions.count("rewind") == 1
