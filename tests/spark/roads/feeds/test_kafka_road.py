"""The whole road of topics on a real broker: empty copy, windows, Delta. The simulated source is the judge."""

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
from tests.spark.roads.feeds.scene import POSTGRES, Fed, Table, definition, table, with_tables

pytestmark = [pytest.mark.jvm, pytest.mark.server]
SEED = seed()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def topics(broker: EmbeddedKafka) -> Topics:
    return Topics(broker, f"p{os.urandom(4).hex()}")


def scene(folder: Path, spark: SparkSession, topics: Topics, *tables: Table) -> Fed:
    options = {"topics": [f"{topics.prefix}.*"], "format": "debezium", "topic_prefix": f"{topics.prefix}"}
    made = definition(folder, Source("kafka", "k", options=options), [one.name for one in tables])
    return Fed(folder, spark, made, ConnectionInfo("k", extra=topics.broker.client))


def send(topics: Topics, one: Table, messages: Iterable[Message]) -> None:
    topics.send(f"{topics.prefix}.{one.name}", messages)


def test_copies_follow_topics_of_several_tables_to_what_the_source_holds(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    first, second, later = table("t", f"{SEED} t"), table("u", f"{SEED} u", manner=POSTGRES), table("v", f"{SEED} v")
    for one, partitions in ((first, 3), (second, 1), (later, 2)):
        topics.make(one.name, partitions)
        send(topics, one, one.next(5))
    feed = scene(tmp_path, spark, topics, first, second)
    feed.green()
    for _ in range(3):
        for one in (first, second, later):
            send(topics, one, one.next(len(one.messages) // 5))
        feed.green()
    feed = with_tables(feed, first, second, later)
    for one in (first, second, later):
        send(topics, one, one.rest())
    feed.green()
    feed.green()
    assert list(feed.differences(first, second, later)) == [], f"CDC_SEED={SEED}"
    assert set(feed.green().states) == {"open_window", "close_window"}, "nothing new: no Spark"
    assert {row.state for row in feed.rows_of().values()} == {TableState.REPLICATING}


@pytest.mark.nightly
def test_a_topic_that_was_made_anew_stops_its_table_alone_until_it_is_copied_from_there(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    one, sibling = table("t", f"{SEED} t"), table("u", f"{SEED} u")
    topic = topics.make(one.name)
    topics.make(sibling.name)
    for each in (one, sibling):
        send(topics, each, each.next(9))
    feed = scene(tmp_path, spark, topics, one, sibling)
    feed.green()
    topics.remove(topic)
    topics.make(one.name)
    send(topics, one, [*one.messages[: one.sent], *one.rest()])
    send(topics, sibling, sibling.rest())
    feed.run()
    road = feed.run()
    assert any("LOG004" in said and "created again" in said for said in road.problems), road.problems
    assert list(feed.differences(sibling)) == [], "the sibling goes on"

    feed.ask(CommandKind.RESYNC, one.name, approve_deletes=True)
    feed.run()
    feed.green()
    assert list(feed.differences(one, sibling)) == []


@pytest.mark.nightly
def test_a_topic_whose_messages_are_all_gone_keeps_its_table(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    one = table("t", f"{SEED} t")
    topic = topics.make(one.name)
    send(topics, one, one.next(9))
    feed = scene(tmp_path, spark, topics, one)
    feed.green()
    topics.forget(topic)
    feed.green()
    send(topics, one, one.rest())
    feed.green()
    assert list(feed.differences(one)) == []
