"""The messages in the topics of a connector, once it has sent all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka

WAIT_S = 600
QUIET_S = 4.0
Ends = dict[tuple[str, int], int]


def parsed(content: bytes | None) -> Any:
    """JSON; decimals keep their digits."""
    return None if content is None else json.loads(content, parse_float=Decimal)


def topic_messages(
    debezium: EmbeddedDebezium, prefix: str, after: int = 0, read: Callable[[bytes | None], Any] = parsed
) -> list[dict[str, Any]]:
    """Messages in the form that ``airflow cdc decode`` reads, once there are more than ``after`` and no more arrive.
    Keys and values are JSON, or what ``read`` makes of them."""
    with _consumer(debezium.broker) as consumer:
        return list(_read(consumer, _settled(debezium, consumer, prefix, after), read))


def _settled(debezium: EmbeddedDebezium, consumer: Consumer, prefix: str, after: int) -> Ends:
    give_up = time.monotonic() + WAIT_S
    total, since = 0, time.monotonic()
    while time.monotonic() < give_up:
        try:
            ends = _ends(consumer, prefix)
        except KafkaException as error:
            # A topic that was created a moment ago is listed before its partitions have a leader.
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            since = time.monotonic()
            time.sleep(0.2)
            continue
        if sum(ends.values()) != total:
            total, since = sum(ends.values()), time.monotonic()
        elif total > after and time.monotonic() - since > QUIET_S:
            return ends
        elif total <= after and (failures := debezium.failures()):
            raise AssertionError("\n".join(failures))
        time.sleep(0.2)
    raise AssertionError(f"{total} messages in the topics of {prefix} after {WAIT_S} s, more than {after} awaited")


def _ends(consumer: Consumer, prefix: str) -> Ends:
    topics = consumer.list_topics(timeout=WAIT_S).topics
    return {
        (name, number): consumer.get_watermark_offsets(TopicPartition(name, number), WAIT_S)[1]
        for name, topic in topics.items()
        if name == prefix or name.startswith(f"{prefix}.")
        for number in topic.partitions
    }


def _read(consumer: Consumer, ends: Ends, read: Callable[[bytes | None], Any]) -> Iterator[dict[str, Any]]:
    for (topic, partition), end in sorted(ends.items()):
        consumer.assign([TopicPartition(topic, partition, 0)])
        offset = -1
        while offset < end - 1:
            message = consumer.poll(WAIT_S)
            assert message is not None and message.error() is None, message and message.error()
            offset = message.offset()
            yield {
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "headers": {name: text and text.decode() for name, text in message.headers() or ()},
                "key": read(message.key()),
                "value": read(message.value()),
            }


@contextmanager
def _consumer(broker: EmbeddedKafka) -> Iterator[Consumer]:
    consumer = Consumer({**broker.client, "group.id": "reader", "enable.auto.commit": False, "log_level": 0})
    try:
        yield consumer
    finally:
        consumer.close()
