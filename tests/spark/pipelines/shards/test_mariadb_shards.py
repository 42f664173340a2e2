"""The same table in several databases of MariaDB, replicated into one table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

EU, US, AP = "shop_eu.orders", "shop_us.orders", "shop_ap.orders"
Row = tuple[Any, ...]


@dataclass(kw_only=True)
class MariaShardsPipeline(Pipeline):
    server: EmbeddedMariaDB
    warehouse: Database

    @property
    def secrets(self) -> Secrets:
        server = self.server
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password)
        return Secrets(info, target=self.warehouse.connection)

    def sql(self, *statements: str) -> list[Row]:
        """Returns the rows of the last statement."""
        server = self.server
        with pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
        ) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def create(self, database: str) -> None:
        self.sql(
            f"CREATE DATABASE {database} CHARACTER SET utf8mb4",
            f"CREATE TABLE {database}.orders (id bigint unsigned PRIMARY KEY, item varchar(40))",
            f"INSERT INTO {database}.orders VALUES (1, '{database} 1'), (2, '{database} 2')",
        )

    def truth(self, *tables: str) -> list[Row]:
        every = [f"SELECT '{table.partition('.')[0]}', id, item FROM {table}" for table in tables]
        return sorted(row for query in every for row in self.sql(query))

    @property
    def rows(self) -> list[Row]:
        return self.warehouse.rows(("region", "id", "item"), "orders")

    def state(self, table: str) -> TableState:
        return self.replicator().state.tables(self.definition.name)[table].state


@pytest.fixture
def shop(
    mariadb: EmbeddedMariaDB, postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path
) -> Iterator[MariaShardsPipeline]:
    with new_schema("postgres", postgres, "maria_shards") as warehouse:
        definition = Definition(
            name="maria_shards",
            source=Source("mysql", "source", options={"databases": ("shop_eu", "shop_us", "shop_ap")}),
            target=warehouse.target,
            tables=(TableRule("shop_*.orders", "orders", shard_column="region", shard_value="{schema}"),),
            staging=Staging(f"{tmp_path}/staging"),
        )
        shop = MariaShardsPipeline(tmp_path, spark, definition, server=mariadb, warehouse=warehouse)
        shop.create("shop_eu")
        shop.create("shop_us")
        yield shop
        shop.sql(*(f"DROP DATABASE IF EXISTS shop_{region}" for region in ("eu", "us", "ap")))


def test_tables_of_several_databases_have_one_target_table_and_states_of_their_own(shop: MariaShardsPipeline) -> None:
    """Changes, a pause, a truncate, a column and a database that come later, a resync, and a comparison."""
    shop.run_successfully()
    assert shop.rows == shop.truth(EU, US) and len(shop.rows) == 4
    shop.sql("UPDATE shop_eu.orders SET item = 'new' WHERE id = 1", "DELETE FROM shop_us.orders WHERE id = 1")
    shop.record_command(CommandKind.PAUSE, US)
    shop.run()
    assert shop.rows == sorted([*shop.truth(EU), ("shop_us", 1, "shop_us 1"), ("shop_us", 2, "shop_us 2")])
    assert (shop.state(EU), shop.state(US)) == (TableState.REPLICATING, TableState.PAUSED)
    shop.record_command(CommandKind.RESUME, US)
    shop.create("shop_ap")
    shop.sql(
        "TRUNCATE TABLE shop_eu.orders",
        "ALTER TABLE shop_us.orders ADD n int",
        "INSERT INTO shop_us.orders VALUES (3, 'c', 7)",
    )
    shop.run_until_idle()
    assert shop.rows == shop.truth(US, AP)
    shop.record_command(CommandKind.RESYNC, US)
    shop.sql("INSERT INTO shop_eu.orders VALUES (3, 'e')", "UPDATE shop_ap.orders SET id = 9 WHERE id = 2")
    shop.run_until_idle()
    assert shop.rows == shop.truth(EU, US, AP)
    shop.record_command(CommandKind.VERIFY, EU, US, AP)
    verified = shop.results(shop.run_successfully(), "verify")
    assert {name: (one.detail["identical"], one.detail["target_rows"]) for name, one in verified.items()} == {
        AP: (True, 2),
        EU: (True, 1),
        US: (True, 2),
    }


def test_rows_that_differ_are_found_among_those_of_the_other_databases_and_copied_again(
    shop: MariaShardsPipeline,
) -> None:
    """A table in a shared target is read as a whole, in a snapshot that another session cannot show."""
    shop.run_successfully()
    shop.run_until_idle()
    orders = f"{shop.warehouse.schema}.orders"
    shop.warehouse.execute(f"UPDATE {orders} SET item = 'damaged' WHERE id = 2 AND region = 'shop_us'")
    shop.record_command(CommandKind.VERIFY, repair=True)
    found = {name: one.detail for name, one in shop.results(shop.run_successfully(), "verify").items()}
    assert {name: one["differences"] for name, one in found.items()} == {EU: [], US: ["shop_us, 2"]}
    assert found[US]["not_repaired"].endswith(f"do: airflow cdc resync maria_shards --table {US}")
    shop.record_command(CommandKind.RESYNC, US)
    shop.run_until_idle()
    assert shop.rows == shop.truth(EU, US)
