"""Topics on a real broker, end to end: empty copy, windows, Delta. The copies must equal the simulated source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.connectors.kafka_topics import Topics
from tests.model.seeds import seed
from tests.spark.pipelines.feeds.pipeline import POSTGRES, FeedPipeline, SimulatedTable, definition, table, with_tables

pytestmark = [pytest.mark.jvm, pytest.mark.server]
SEED = seed()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def topics(broker: EmbeddedKafka) -> Topics:
    return Topics(broker, f"p{os.urandom(4).hex()}")


def feed_pipeline(folder: Path, spark: SparkSession, topics: Topics, *tables: SimulatedTable) -> FeedPipeline:
    options = {"topics": [f"{topics.prefix}.*"], "format": "debezium", "topic_prefix": f"{topics.prefix}"}
    made = definition(folder, Source("kafka", "k", options=options), [one.name for one in tables])
    return FeedPipeline(folder, spark, made, ConnectionInfo("k", extra=topics.broker.client))


def send(topics: Topics, one: SimulatedTable, messages: Iterable[Message]) -> None:
    topics.send(f"{topics.prefix}.{one.name}", messages)


def test_copies_of_topics_of_several_tables_equal_the_source(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    first, second, later = table("t", f"{SEED} t"), table("u", f"{SEED} u", manner=POSTGRES), table("v", f"{SEED} v")
    for one, partitions in ((first, 3), (second, 1), (later, 2)):
        topics.make(one.name, partitions)
        send(topics, one, one.next(5))
    feed = feed_pipeline(tmp_path, spark, topics, first, second)
    feed.run_successfully()
    for _ in range(3):
        for one in (first, second, later):
            send(topics, one, one.next(len(one.messages) // 5))
        feed.run_successfully()
    feed = with_tables(feed, first, second, later)
    for one in (first, second, later):
        send(topics, one, one.rest())
    feed.run_successfully()
    feed.run_successfully()
    assert list(feed.differences(first, second, later)) == [], f"CDC_SEED={SEED}"
    assert set(feed.run_successfully().states) == {"open_window", "close_window"}, "no changes: no Spark"
    assert {row.state for row in feed.rows_of().values()} == {TableState.REPLICATING}


@pytest.mark.nightly
def test_a_recreated_topic_stops_its_table_alone_until_a_resync(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    one, other = table("t", f"{SEED} t"), table("u", f"{SEED} u")
    topic = topics.make(one.name)
    topics.make(other.name)
    for each in (one, other):
        send(topics, each, each.next(9))
    feed = feed_pipeline(tmp_path, spark, topics, one, other)
    feed.run_successfully()
    topics.remove(topic)
    topics.make(one.name)
    send(topics, one, [*one.messages[: one.sent], *one.rest()])
    send(topics, other, other.rest())
    feed.run()
    dag_run = feed.run()
    assert any("LOG004" in problem and "created again" in problem for problem in dag_run.problems), dag_run.problems
    assert list(feed.differences(other)) == [], "the other table continues"

    feed.record_command(CommandKind.RESYNC, one.name, approve_deletes=True)
    feed.run()
    feed.run_successfully()
    assert list(feed.differences(one, other)) == []


@pytest.mark.nightly
def test_a_topic_whose_messages_have_all_expired_keeps_its_table(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    one = table("t", f"{SEED} t")
    topic = topics.make(one.name)
    send(topics, one, one.next(9))
    feed = feed_pipeline(tmp_path, spark, topics, one)
    feed.run_successfully()
    topics.forget(topic)
    feed.run_successfully()
    send(topics, one, one.rest())
    feed.run_successfully()
    assert list(feed.differences(one)) == []
