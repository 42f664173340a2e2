"""Topics with several partitions, of which windows read unequal parts, into Delta: the copies equal the source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka import topic_status
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.connectors.kafka_topics import Topics
from tests.spark.pipelines.feeds.one_table import TABLE, change
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server]

EARLY = {0: [change(40, "t")], 1: [change(lsn, "c", lsn, "a") for lsn in (10, 20, 30, 50)]}
"""Of a window of two messages, one is the truncate."""
LATE = {
    0: [*(change(lsn, "c", lsn, "a") for lsn in (10, 20, 30)), change(40, "t")],
    1: [change(lsn, "c", lsn, "a") for lsn in (50, 60)],
}
MOVED = {
    0: [change(10, "c", 1, "a"), change(40, "d", 1, "a"), change(50, "c", 3, "c")],
    1: [change(20, "c", 2, "b"), change(30, "d", 2, "b"), change(41, "c", 2, "a")],
}
"""The row with key 1 takes key 2, as soon as that is free."""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


def sent(broker: EmbeddedKafka, topic: str, partitions: Mapping[int, list[Message]]) -> None:
    producer = Producer(broker.client)
    for partition, messages in partitions.items():
        for one in messages:
            producer.produce(topic, one.value, one.key, partition)
    assert producer.flush(60) == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("partitions", "keys"),
    [(EARLY, {50}), (LATE, {50, 60}), (MOVED, {2, 3, 5})],
    ids=["a truncate comes early", "a truncate comes late", "a key moves"],
)
def test_changes_of_partitions_that_are_read_unequally_are_applied_in_order(
    tmp_path: Path,
    spark: SparkSession,
    broker: EmbeddedKafka,
    monkeypatch: pytest.MonkeyPatch,
    partitions: Mapping[int, list[Message]],
    keys: set[int],
) -> None:
    monkeypatch.setattr(topic_status, "WINDOW_MESSAGES", 2)
    topics = Topics(broker, f"p{os.urandom(4).hex()}")
    topic = topics.make(TABLE, len(partitions))
    sent(broker, topic, {0: [change(5, "c", 5, "first")]})
    options = {"topics": [f"{topics.prefix}.*"], "format": "debezium", "topic_prefix": topics.prefix}
    made = definition(tmp_path, Source("kafka", "k", options=options), [TABLE])
    feed = FeedPipeline(tmp_path, spark, made, ConnectionInfo("k", extra=broker.client))
    feed.run_until_idle()
    first = feed.replicator().log.sealed()
    sent(broker, topic, partitions)
    feed.run_until_idle()
    assert feed.replicator().log.sealed() > first + 1, "several windows"
    assert feed.copied_rows(TABLE, "id").keys() == keys
