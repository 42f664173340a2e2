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
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

SHOPS = ("shard_eu", "shard_us")
EU, US = (f"{name}.orders" for name in SHOPS)
COLUMNS = ("region", "id", "item", "price")


@dataclass(kw_only=True)
class MariaDBShards(Pipeline):
    server: EmbeddedMariaDB
    warehouse: Database

    @property
    def secrets(self) -> Secrets:
        server = self.server
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password)
        return Secrets(info, target=self.warehouse.connection)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the last statement."""
        server = self.server
        with (
            pymysql.connect(
                host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def create(self, name: str) -> None:
        self.sql(
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4",
            f"CREATE TABLE {name}.orders (id int PRIMARY KEY, item varchar(40), price decimal(10,2))",
            f"INSERT INTO {name}.orders SELECT seq, concat('{name} ', seq), seq / 4 FROM seq_1_to_20",
        )

    def assert_exact(self, *names: str) -> None:
        truth = [(name, *row) for name in names for row in self.sql(f"SELECT id, item, price FROM {name}.orders")]
        assert self.warehouse.rows(COLUMNS, "orders") == sorted(truth, key=lambda row: [(False, str(v)) for v in row])


@pytest.fixture
def shop(
    mariadb: EmbeddedMariaDB, postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path
) -> Iterator[MariaDBShards]:
    with new_schema("postgres", postgres, "mariadb_shards") as warehouse:
        definition = Definition(
            name="mariadb_shards",
            source=Source("mysql", "source", options={"databases": (*SHOPS, "shard_ap")}),
            target=warehouse.target,
            tables=(TableRule("shard_*.orders", "orders", shard_column="region", shard_value="{schema}"),),
            staging=Staging(f"{tmp_path}/staging"),
        )
        shop = MariaDBShards(tmp_path, spark, definition, server=mariadb, warehouse=warehouse)
        for name in SHOPS:
            shop.create(name)
        yield shop
        shop.sql(*(f"DROP DATABASE IF EXISTS {name}" for name in (*SHOPS, "shard_ap")))


def test_databases_of_mariadb_have_one_table_in_postgresql(shop: MariaDBShards) -> None:
    shop.run_successfully()
    shop.assert_exact(*SHOPS)
    shop.sql(
        "UPDATE shard_eu.orders SET item = 'ü', price = NULL WHERE id = 1",
        "DELETE FROM shard_us.orders WHERE id = 1",
        "UPDATE shard_us.orders SET id = 99 WHERE id = 2",
    )
    shop.run_successfully()
    shop.assert_exact(*SHOPS)
    shop.create("shard_ap")
    shop.sql("TRUNCATE shard_eu.orders", "INSERT INTO shard_eu.orders VALUES (7, 'again', 1)")
    shop.run_until_idle()
    shop.assert_exact("shard_ap", *SHOPS)
    shop.warehouse.execute(f"DELETE FROM {shop.warehouse.schema}.orders WHERE region = 'shard_us' AND id = 3")
    shop.record_command(CommandKind.VERIFY, EU, US)
    found = shop.results(shop.run(), "verify")
    assert (found[EU].detail["identical"], found[US].detail["identical"]) == (True, False)
    shop.record_command(CommandKind.RESYNC, US)
    shop.sql("UPDATE shard_ap.orders SET price = 0 WHERE id = 1")
    shop.run_until_idle()
    shop.assert_exact("shard_ap", *SHOPS)
