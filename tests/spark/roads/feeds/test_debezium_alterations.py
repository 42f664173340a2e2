"""A table that is altered behind a real Debezium, so that rows change and no message tells."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium.restarts_story import DATABASE, Postgres
from tests.spark.roads.feeds.connector import Copied, copied

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SWAP = ("ALTER TABLE t RENAME a TO x", "ALTER TABLE t RENAME b TO a", "ALTER TABLE t RENAME x TO b")
ALL = {"t": ("name", "a", "b"), "emptied": ("name", "n")}


def test_values_that_no_message_tells_stop_the_table_until_the_connector_tells_it_anew(
    tmp_path: Path, spark: SparkSession
) -> None:
    with (
        EmbeddedKafka() as broker,
        EmbeddedPostgres() as server,
        copied(tmp_path, spark, broker, Postgres(server), Reconcile.MANUAL) as one,
    ):
        altered(one, "ALTER TABLE t ADD a int, ADD b int", "UPDATE t SET a = id, b = -id")
        one.feed.settle()
        assert differences(one, {"t": ("a", "b")}) == [], "columns without a value in older rows"
        altered(one, "ALTER TABLE emptied ADD n int NOT NULL DEFAULT 5", "INSERT INTO emptied VALUES (2, 'b', 6)")
        altered(one, *SWAP, "INSERT INTO t VALUES (9, 'z', 1, 2)")
        said = [*one.feed.run().problems, *one.feed.run().problems]
        assert any("rows older than column n have a value" in each for each in said), said
        assert any("columns a, b changed positions or names" in each for each in said), said

        one.lose_offsets()
        one.feed.run()
        one.feed.ask(CommandKind.RESYNC, *one.feed.tables)
        one.feed.settle()
        assert differences(one, ALL) == []
        altered(one, "UPDATE t SET a = 7 WHERE id = 1")
        one.feed.settle()
        assert differences(one, ALL) == []


def altered(one: Copied, *statements: str) -> None:
    one.database.do(*statements)
    one.awaited()


def differences(one: Copied, columns: dict[str, tuple[str, ...]]) -> list[str]:
    database, found = one.database, []
    assert isinstance(database, Postgres)
    for table, names in columns.items():
        held = {key: tuple(row[name] for name in names) for key, row in one.feed.held(f"public.{table}", "id").items()}
        with psycopg.connect(database.server.dsn(DATABASE)) as session:
            rows = session.execute(f"SELECT {', '.join(('id', *names))} FROM {table}").fetchall()
        if held != (true := {key: tuple(rest) for key, *rest in rows}):
            found.append(f"{table}: {held}, in truth {true}")
    return found
