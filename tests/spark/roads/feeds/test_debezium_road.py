"""The whole road behind a real Debezium: PostgreSQL and MariaDB, through a real broker or through files, into Delta.

What the databases hold in the end is the judge.
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
from tests.spark.roads.feeds.scene import Fed, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Rows = Sequence[Mapping[str, Any]]


def feed_of(
    story: ModuleType, folder: Path, spark: SparkSession, info: ConnectionInfo, kind: str, **options: Any
) -> Fed:
    told = {"format": "debezium", "topic_prefix": story.PREFIX, **options}
    made = definition(folder, Source(kind, info.connection_id, options=told), story.KEYED)
    return Fed(folder, spark, made, info)


def differences(feed: Fed, truth: Mapping[str, Rows]) -> list[str]:
    return [
        f"{table}: {copied}, in truth {true}"
        for table in feed.tables
        for copied, true in _side_by_side(feed, table, truth[table])
        if copied != true
    ]


def _side_by_side(feed: Fed, table: str, rows: Rows) -> Iterator[tuple[Any, Any]]:
    """By the first column of the key. What a row has only in the copy is a column that was dropped."""
    key = next(iter(rows[0]))
    held = {one[key]: one for one in map(row, feed.held(table, key).values())}
    true = {one[key]: one for one in map(row, rows)}
    for number in sorted(held.keys() | true.keys(), key=str):
        copied = held.get(number, {})
        yield {name: copied.get(name) for name in true.get(number, copied)}, true.get(number)


@dataclass
class Watched:
    """A database whose story Debezium tells, and its copy."""

    story: ModuleType
    server: EmbeddedPostgres | EmbeddedMariaDB
    feed: Fed


def test_copies_behind_a_real_debezium_are_what_its_databases_hold(tmp_path: Path, spark: SparkSession) -> None:
    """Topics of transactions, of schemas and of a table without key are read with the others."""
    with EmbeddedKafka() as broker, EmbeddedPostgres() as postgres, embedded() as mariadb:
        info = ConnectionInfo("k", extra=broker.client)

        def watched(story: ModuleType, server: EmbeddedPostgres | EmbeddedMariaDB) -> Watched:
            topics = [story.PREFIX, f"{story.PREFIX}.*"]
            return Watched(story, server, feed_of(story, tmp_path / story.PREFIX, spark, info, "kafka", topics=topics))

        both = [watched(postgres_changes, postgres), watched(mariadb_changes, mariadb)]
        for one in both:
            one.story.prepare(one.server)
        connectors = {one.story.PREFIX: one.story.connector(one.server) for one in both}
        with EmbeddedDebezium(broker, connectors) as debezium:
            for one in both:
                topic_messages(broker, one.story.PREFIX)
                one.feed.green()
            for one in both:
                one.story.apply_changes(one.server)
                one.feed.green()  # in the midst of it
            # It is killed before it has written down where it was, so it tells some things twice.
            assert debezium.pid is not None
            os.kill(debezium.pid, signal.SIGKILL)
            debezium.stop()
            debezium.start()
            for one in both:
                topic_messages(broker, one.story.PREFIX)
                one.feed.settle()
                assert differences(one.feed, one.story.final_rows(one.server)) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("story", "name"), [(postgres_changes, "postgres"), (mariadb_changes, "mariadb")])
def test_copies_of_files_that_a_real_debezium_filled_are_what_its_database_held(
    tmp_path: Path, spark: SparkSession, story: ModuleType, name: str
) -> None:
    """From the first row to the last in one window, one folder per topic."""
    lines = gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines(keepends=True)
    an_hour_ago = time.time() - 3600
    for topic, of_topic in groupby(lines, lambda line: json.loads(line)["topic"]):
        file = tmp_path / "events" / topic / "1.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"".join(of_topic))
        os.utime(file, (an_hour_ago, an_hour_ago))
    feed = feed_of(story, tmp_path, spark, ConnectionInfo(), "files", location=f"{tmp_path}/events")
    feed.settle()
    assert differences(feed, json.loads((RECORDED / f"{name}_end.json").read_text())) == []
