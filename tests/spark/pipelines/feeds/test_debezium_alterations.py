"""Tables that are altered behind a real Debezium, so that rows change without a message."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium.restart_databases import DATABASE, Postgres
from tests.spark.pipelines.feeds.debezium_copy import DebeziumCopy, debezium_copy

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

SWAP = ("ALTER TABLE t RENAME a TO x", "ALTER TABLE t RENAME b TO a", "ALTER TABLE t RENAME x TO b")
ALL = {"t": ("name", "a", "b"), "emptied": ("name", "n")}


def test_values_that_no_message_contains_stop_the_table_until_the_connector_sends_a_new_snapshot(
    tmp_path: Path, spark: SparkSession
) -> None:
    with (
        EmbeddedKafka() as broker,
        EmbeddedPostgres() as server,
        debezium_copy(tmp_path, spark, broker, Postgres(server), Reconcile.MANUAL) as one,
    ):
        altered(one, "ALTER TABLE t ADD a int, ADD b int", "UPDATE t SET a = id, b = -id")
        one.feed.run_until_idle()
        assert differences(one, {"t": ("a", "b")}) == [], "columns without a value in older rows"
        altered(one, "ALTER TABLE emptied ADD n int NOT NULL DEFAULT 5", "INSERT INTO emptied VALUES (2, 'b', 6)")
        altered(one, *SWAP, "INSERT INTO t VALUES (9, 'z', 1, 2)")
        problems = [*one.feed.run().problems, *one.feed.run().problems]
        assert any("rows older than column n have a value" in each for each in problems), problems
        assert any("columns a, b changed positions or names" in each for each in problems), problems

        one.lose_offsets()
        one.feed.run()
        one.feed.record_command(CommandKind.RESYNC, *one.feed.tables)
        one.feed.run_until_idle()
        assert differences(one, ALL) == []
        altered(one, "UPDATE t SET a = 7 WHERE id = 1")
        one.feed.run_until_idle()
        assert differences(one, ALL) == []


def altered(one: DebeziumCopy, *statements: str) -> None:
    one.database.do(*statements)
    one.awaited()


def differences(one: DebeziumCopy, columns: dict[str, tuple[str, ...]]) -> list[str]:
    database, found = one.database, []
    assert isinstance(database, Postgres)
    for table, names in columns.items():
        copied = {
            key: tuple(row[name] for name in names)
            for key, row in one.feed.copied_rows(f"public.{table}", "id").items()
        }
        with psycopg.connect(database.server.dsn(DATABASE)) as session:
            rows = session.execute(f"SELECT {', '.join(('id', *names))} FROM {table}").fetchall()
        if copied != (true := {key: tuple(rest) for key, *rest in rows}):
            found.append(f"{table}: {copied}, in truth {true}")
    return found
