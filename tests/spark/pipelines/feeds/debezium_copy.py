"""A replicator behind a real Debezium, and the database, broker and connector that a test controls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Reconcile, Source
from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.debezium.restart_databases import Database
from tests.debezium.topics import topic_messages
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition


@dataclass
class DebeziumCopy:
    """A database, its connector, and the replicator of its tables."""

    database: Database
    debezium: EmbeddedDebezium
    feed: FeedPipeline
    messages: int = 0

    def awaited(self) -> None:
        """Waits until the topics hold more than at the last call."""
        self.messages = len(topic_messages(self.debezium, self.database.prefix, self.messages))

    def lose_offsets(self, *meanwhile: str) -> None:
        self.debezium.stop()
        self.database.do(*meanwhile)
        os.remove(self.debezium.folder / "offsets")
        self.debezium.start()
        self.awaited()

    def differences(self) -> list[str]:
        tables = ((one, self.feed.tables[number]) for number, one in enumerate(("t", "emptied")))
        both = ((name, self.copied_rows(table), self.database.rows(name)) for name, table in tables)
        return [f"{name}: {copied}, in truth {true}" for name, copied, true in both if copied != true]

    def copied_rows(self, table: str) -> dict[int, str]:
        return {key: row["name"] for key, row in self.feed.copied_rows(table, "id").items()}


@contextmanager
def debezium_copy(
    folder: Path, spark: SparkSession, broker: EmbeddedKafka, database: Database, reconcile: Reconcile
) -> Iterator[DebeziumCopy]:
    info = ConnectionInfo("k", extra=broker.client)
    options = {
        "format": "debezium",
        "topic_prefix": database.prefix,
        "topics": [f"{database.prefix}.*"],
    }
    source = Source("kafka", "k", options=options, reconcile=reconcile)
    tables = [f"{database.schema}.t", f"{database.schema}.emptied"]
    feed = FeedPipeline(folder, spark, definition(folder, source, tables), info)
    with EmbeddedDebezium(broker, {database.prefix: database.connector()}) as debezium:
        one = DebeziumCopy(database, debezium, feed)
        one.awaited()
        feed.run_until_idle()
        database.do("UPDATE t SET name = 'x' WHERE id = 1", "INSERT INTO t VALUES (4, 'd')")
        one.awaited()
        feed.run_until_idle()
        assert one.differences() == []
        yield one
