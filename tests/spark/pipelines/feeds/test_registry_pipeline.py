"""Topics with registered schemas, end to end: whole runs with a real broker and a real registry into Delta."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.spec.definition import OnBadRecord, Source
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.debezium_encoder import FIELDS, ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.registered_writer import registered
from tests.connectors.formats.simulator import Simulator
from tests.connectors.kafka_topics import Topics
from tests.model.seeds import seed
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, SimulatedTable, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]
SEED = seed()
MYSQL = ConnectorSetup("mysql", schemas=False, transactions=True, headers=True)
ADDED = {"type": "string", "optional": True, "field": "added"}


@dataclass
class Servers:
    broker: EmbeddedKafka
    registry: EmbeddedRegistry


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    try:
        registry = EmbeddedRegistry()
    except NotInstalled as missing:
        pytest.skip(f"the registry needs Java 21 or later: {missing}")
    with EmbeddedKafka() as broker, registry:
        yield Servers(broker, registry)


def table(registry: EmbeddedRegistry, topic: str) -> SimulatedTable:
    history = Simulator(Random(SEED), moves=True, late_check=False).history(60)
    bare = [one._replace(topic=topic) for one in DebeziumEncoder(MYSQL, Random(SEED)).messages(history)]
    half = len(bare) // 2
    plain = [*with_schemas(bare[:half], topic), *with_schemas(bare[half:], topic, [*FIELDS, ADDED])]
    return SimulatedTable("d.t", history, registered(registry.url, "avro", plain))


def test_a_copy_of_avro_topics_equals_the_source_also_after_a_replay_without_the_registry(
    tmp_path: Path, spark: SparkSession, servers: Servers
) -> None:
    topics = Topics(servers.broker, f"p{os.urandom(4).hex()}")
    topic = topics.make("d.t", 2)
    one = table(servers.registry, topic)
    feed = pipeline(tmp_path, spark, topics, servers.registry)
    send(topics, topic, one.next(20))
    feed.run_successfully()
    send(topics, topic, one.next(len(one.messages) - 40))
    feed.run_successfully()
    send(topics, topic, one.rest())
    servers.registry.stop()
    try:
        feed.run_until_idle()
        assert list(feed.differences(one)) == [], f"CDC_SEED={SEED}"
        feed.record_command(CommandKind.RESYNC, "d.t", approve_deletes=True)
        feed.run_until_idle()
        assert list(feed.differences(one)) == [], f"CDC_SEED={SEED}"
        stranger = one.messages[5]._replace(value=b"\0" + (99_999).to_bytes(4, "big") + b"x")
        send(topics, topic, [stranger])
        failed = feed.run()
        assert not failed.green and any("SRC110" in str(problem) for problem in failed.problems), failed.problems
        sealed = feed.replicator().log.sealed()
        assert not feed.run().green and feed.replicator().log.sealed() == sealed
    finally:
        servers.registry.start()
    failed = feed.run()
    assert any("SRC108" in str(problem) and "offset" in str(problem) for problem in failed.problems), failed.problems
    assert list(feed.differences(one)) == [], f"CDC_SEED={SEED}"


def test_damaged_content_waits_in_quarantine_with_the_later_changes_of_its_table(
    tmp_path: Path, spark: SparkSession, servers: Servers
) -> None:
    topics = Topics(servers.broker, f"p{os.urandom(4).hex()}")
    topic = topics.make("d.t")
    one = table(servers.registry, topic)
    feed = pipeline(tmp_path, spark, topics, servers.registry, on_bad_record=OnBadRecord.QUARANTINE)
    send(topics, topic, one.next(20))
    feed.run_successfully()
    damaged = one.messages[10]._replace(value=(one.messages[10].value or b"")[:20])
    send(topics, topic, [damaged])
    stopped = feed.run()
    assert any("EVT001" in str(problem) for problem in stopped.problems), stopped.problems


def pipeline(
    folder: Path, spark: SparkSession, topics: Topics, registry: EmbeddedRegistry, **rules: object
) -> FeedPipeline:
    options = {
        "topics": [f"{topics.prefix}.*"],
        "format": "debezium",
        "topic_prefix": topics.prefix,
        "registry": "schemas",
    }
    made = definition(folder, Source("kafka", "k", options=options), ["d.t"], **rules)
    broker = ConnectionInfo("k", extra=topics.broker.client)
    return FeedPipeline(folder, spark, made, broker, registry.connection)


def send(topics: Topics, topic: str, messages: Iterable[Message]) -> None:
    topics.send(topic, messages)
