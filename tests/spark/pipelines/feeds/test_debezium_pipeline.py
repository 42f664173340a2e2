"""PostgreSQL and MariaDB behind a real Debezium, through a real broker or through files, into Delta.

The copies must equal the final state of the databases.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium import mariadb_changes, postgres_changes
from tests.debezium.plain import row
from tests.debezium.record import RECORDED
from tests.debezium.topics import topic_messages
from tests.mariadb import embedded
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Rows = Sequence[Mapping[str, Any]]


def feed_of(
    workload: ModuleType, folder: Path, spark: SparkSession, info: ConnectionInfo, kind: str, **options: Any
) -> FeedPipeline:
    source_options = {"format": "debezium", "topic_prefix": workload.PREFIX, **options}
    made = definition(folder, Source(kind, info.connection_id, options=source_options), workload.KEYED)
    return FeedPipeline(folder, spark, made, info)


def differences(feed: FeedPipeline, truth: Mapping[str, Rows]) -> list[str]:
    return [
        f"{table}: {copied}, in truth {true}"
        for table in feed.tables
        for copied, true in _side_by_side(feed, table, truth[table])
        if copied != true
    ]


def _side_by_side(feed: FeedPipeline, table: str, rows: Rows) -> Iterator[tuple[Any, Any]]:
    """By the first column of the key. A column that only the copy has was dropped."""
    key = next(iter(rows[0]))
    copies = {one[key]: one for one in map(row, feed.copied_rows(table, key).values())}
    true = {one[key]: one for one in map(row, rows)}
    for number in sorted(copies.keys() | true.keys(), key=str):
        copied = copies.get(number, {})
        yield {name: copied.get(name) for name in true.get(number, copied)}, true.get(number)


@dataclass
class DebeziumWorkload:
    """A database whose changes Debezium sends, and its copy."""

    workload: ModuleType
    server: EmbeddedPostgres | EmbeddedMariaDB
    feed: FeedPipeline


@pytest.mark.nightly
def test_copies_behind_a_real_debezium_equal_its_databases(tmp_path: Path, spark: SparkSession) -> None:
    """Topics of transactions, of schemas and of a table without key are read with the others."""
    with EmbeddedKafka() as broker, EmbeddedPostgres() as postgres, embedded() as mariadb:
        info = ConnectionInfo("k", extra=broker.client)

        def debezium_workload(workload: ModuleType, server: EmbeddedPostgres | EmbeddedMariaDB) -> DebeziumWorkload:
            topics = [workload.PREFIX, f"{workload.PREFIX}.*"]
            return DebeziumWorkload(
                workload, server, feed_of(workload, tmp_path / workload.PREFIX, spark, info, "kafka", topics=topics)
            )

        both = [debezium_workload(postgres_changes, postgres), debezium_workload(mariadb_changes, mariadb)]
        for one in both:
            one.workload.prepare(one.server)
        connectors = {one.workload.PREFIX: one.workload.connector(one.server) for one in both}
        with EmbeddedDebezium(broker, connectors) as debezium:
            for one in both:
                topic_messages(debezium, one.workload.PREFIX)
                one.feed.run_successfully()
            for one in both:
                one.workload.apply_changes(one.server)
                one.feed.run_successfully()  # while the connector still sends
            # The kill is before it stores its offsets, so it sends some changes twice.
            assert debezium.pid is not None
            os.kill(debezium.pid, signal.SIGKILL)
            debezium.stop()
            debezium.start()
            for one in both:
                topic_messages(debezium, one.workload.PREFIX)
                one.feed.run_until_idle()
                assert differences(one.feed, one.workload.final_rows(one.server)) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("workload", "name"), [(postgres_changes, "postgres"), (mariadb_changes, "mariadb")])
def test_copies_of_files_that_a_real_debezium_wrote_equal_its_database(
    tmp_path: Path, spark: SparkSession, workload: ModuleType, name: str
) -> None:
    """From the first row to the last in one window, one folder per topic."""
    lines = gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines(keepends=True)
    an_hour_ago = time.time() - 3600
    for topic, of_topic in groupby(lines, lambda line: json.loads(line)["topic"]):
        file = tmp_path / "events" / topic / "1.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"".join(of_topic))
        os.utime(file, (an_hour_ago, an_hour_ago))
    feed = feed_of(workload, tmp_path, spark, ConnectionInfo(), "files", location=f"{tmp_path}/events")
    feed.run_until_idle()
    assert differences(feed, json.loads((RECORDED / f"{name}_end.json").read_text())) == []
