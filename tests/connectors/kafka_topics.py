"""Topics of one test on a real broker, and a replicator's source that reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.blocks import unpacked
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator

WAIT_S = 300
MYSQL = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)


def messages(transactions: int = 8, setup: ConnectorSetup = MYSQL) -> list[Message]:
    history = Simulator(Random("topics"), moves=True, late_check=False).history(transactions)
    return list(DebeziumEncoder(setup, Random(1)).messages(history))


class Topics:
    """Topics of one test, and a replicator's source that reads them."""

    def __init__(self, broker: EmbeddedKafka, prefix: str) -> None:
        self.broker = broker
        self.prefix = prefix
        self.admin = AdminClient(broker.client)

    def make(self, name: str, partitions: int = 1, **config: str) -> str:
        topic = f"{self.prefix}.{name}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self._done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]))
        self._until(lambda: topic in self.admin.list_topics(timeout=WAIT_S).topics)
        return topic

    def remove(self, topic: str) -> None:
        self._done(self.admin.delete_topics([topic]))
        self._until(lambda: topic not in self.admin.list_topics(timeout=WAIT_S).topics)

    def add_partition(self, topic: str, total: int) -> None:
        self._done(self.admin.create_partitions([NewPartitions(topic, total)]))
        self._until(lambda: len(self.admin.list_topics(timeout=WAIT_S).topics[topic].partitions) == total)

    def send(self, topic: str, messages: Iterable[Message], **settings: Any) -> None:
        producer = Producer({**self.broker.client, **settings})
        for one in messages:
            producer.produce(topic, one.value, one.key, headers=list(one.headers))
        assert producer.flush(WAIT_S) == 0

    def begun(self, topic: str, messages: Iterable[Message]) -> Producer:
        """A transaction that stays open."""
        producer = Producer({**self.broker.client, "transactional.id": f"{topic}-{time.monotonic()}"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        for one in messages:
            producer.produce(topic, one.value, one.key)
        producer.flush(WAIT_S)
        return producer

    def forget(self, topic: str) -> None:
        """Deletes the messages of the topic, as retention does."""
        self.set(topic, **{"retention.ms": "1", "segment.ms": "1"})
        self._until(lambda: any(span.begin > 0 for span in self.source()._spans.values()))
        self.set(topic, **{"retention.ms": "-1"})

    def set(self, topic: str, **config: str) -> None:
        kind = AlterConfigOpType.SET
        entries = [ConfigEntry(name, value, incremental_operation=kind) for name, value in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._done(self.admin.incremental_alter_configs([resource]))

    def source(self, **options: Any) -> KafkaSource:
        """A new one, as in each process."""
        settings = {"topics": [f"{self.prefix}.*"], "format": "debezium", "topic_prefix": self.prefix, **options}
        return KafkaSource(
            Source("kafka", "k", options=settings), ConnectionInfo("k", extra=self.broker.client), "feed"
        )

    def tasks(self, **options: Any) -> list[TableTask]:
        tables = self.source(**options).tables()
        return [TableTask(one.table, "t", one, TableRule(one.table), "", TableState.PENDING) for one in tables]

    def window(self, lo: Position, tasks: Sequence[TableTask], **options: Any) -> tuple[list[StreamItem], Position]:
        source = self.source(**options)
        status = source.status(lo, [task.table for task in tasks])
        if not status.has_changes:
            return [], lo
        items = [item for part in source.splits(lo, status.limit) for item in unpacked(source.read(part, tasks, 1))]
        (end,) = {json.dumps(dict(item.position)) for item in items if isinstance(item, Boundary)}
        return items, {**lo, **json.loads(end)}

    def _done(self, futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(WAIT_S)

    def _until(self, true: Any) -> None:
        give_up = time.monotonic() + WAIT_S
        while not true():
            assert time.monotonic() < give_up
            time.sleep(0.1)
