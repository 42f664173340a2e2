"""A table that leaves the publication is stopped alone, and changes meanwhile are never lost silently."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Definition, Reconcile, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults.worker import request
from tests.spark.pipelines.pipeline import Pipeline

pytestmark = [pytest.mark.jvm, pytest.mark.server]

NUMBERS = itertools.count(1)
ITEM, OTHER = "public.item", "public.other"
SLOTS = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s"


@dataclass(kw_only=True)
class PublicationPipeline(Pipeline):
    server: EmbeddedPostgres
    database: str

    @property
    def secrets(self) -> Secrets:
        server = self.server
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password, schema=self.database)
        return Secrets(info)

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.server.dsn(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def copy_of(self, table: str) -> dict[int, str]:
        return {key: row["name"] for key, row in self.copied_rows(table, "id").items()}

    def row(self, table: str) -> TableRow:
        return self.replicator().state.tables(self.definition.name)[table]

    def resync(self, table: str) -> None:
        options = {"tables": [table], "key": f"again{next(NUMBERS)}", "arguments": {"approve_deletes": True}}
        request(self.replicator(), CommandKind.RESYNC, options)


@pytest.fixture
def shop(postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path) -> Iterator[PublicationPipeline]:
    name = f"publication{next(NUMBERS)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        definition = Definition(
            name=name,
            source=Source("postgres", "source", options={"publication": "cdc"}),
            target=Target("delta", f"{tmp_path}/lake"),
            tables=(TableRule(ITEM), TableRule(OTHER)),
            staging=Staging(f"{tmp_path}/staging"),
        )
        shop = PublicationPipeline(tmp_path, spark, definition, server=postgres, database=name)
        for table in (ITEM, OTHER):
            shop.sql(f"CREATE TABLE {table} (id int PRIMARY KEY, name text)", f"INSERT INTO {table} VALUES (1, 'a')")
        shop.sql("CREATE PUBLICATION cdc FOR TABLE item, other")
        shop.run_successfully()
        yield shop
        server.execute(SLOTS, [name])
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def leave_publication(shop: PublicationPipeline) -> None:
    """A change that is sent, one that is not, and another table that continues."""
    shop.sql("INSERT INTO item VALUES (2, 'sent')", "ALTER PUBLICATION cdc DROP TABLE item")
    shop.sql("INSERT INTO item VALUES (3, 'not sent')", "INSERT INTO other VALUES (2, 'b')")
    assert not shop.run().green
    assert shop.copy_of(OTHER) == {1: "a", 2: "b"}
    row = shop.row(ITEM)
    assert row.state is TableState.BLOCKED and "is not in publication cdc" in row.reason
    assert 'ALTER PUBLICATION "cdc" ADD TABLE "public"."item"' in row.remedy


def test_a_table_outside_the_publication_is_blocked_alone_and_needs_a_resync_after_its_return(
    shop: PublicationPipeline,
) -> None:
    leave_publication(shop)
    shop.sql("ALTER PUBLICATION cdc ADD TABLE item", "INSERT INTO item VALUES (4, 'sent again')")
    shop.sql("INSERT INTO other VALUES (3, 'c')")
    assert not shop.run().green
    assert shop.copy_of(OTHER) == {1: "a", 2: "b", 3: "c"}
    row = shop.row(ITEM)
    assert row.state is TableState.BLOCKED and "airflow cdc resync" in row.remedy
    shop.resync(ITEM)
    shop.run_until_idle()
    assert shop.copy_of(ITEM) == {1: "a", 2: "sent", 3: "not sent", 4: "sent again"}


@pytest.mark.nightly
def test_a_table_that_returns_is_copied_again_with_reconcile_auto(shop: PublicationPipeline) -> None:
    shop.with_source(reconcile=Reconcile.AUTO)
    leave_publication(shop)
    assert not shop.run().green, "a run does not add a table to the publication"
    shop.sql("ALTER PUBLICATION cdc ADD TABLE item")
    shop.run_until_idle()
    assert shop.copy_of(ITEM) == {1: "a", 2: "sent", 3: "not sent"}


@pytest.mark.nightly
def test_a_resync_adds_a_table_to_the_publication_if_the_role_may(shop: PublicationPipeline) -> None:
    leave_publication(shop)
    shop.resync(ITEM)
    shop.run_until_idle()
    assert shop.copy_of(ITEM) == {1: "a", 2: "sent", 3: "not sent"}


def test_a_table_that_left_and_returned_between_two_runs_is_detected(shop: PublicationPipeline) -> None:
    shop.sql("ALTER PUBLICATION cdc DROP TABLE item", "INSERT INTO item VALUES (2, 'not sent')")
    shop.sql("ALTER PUBLICATION cdc ADD TABLE item", "INSERT INTO other VALUES (2, 'b')")
    assert not shop.run().green
    assert shop.copy_of(OTHER) == {1: "a", 2: "b"}
    row = shop.row(ITEM)
    assert row.state is TableState.BLOCKED and "airflow cdc resync" in row.remedy
