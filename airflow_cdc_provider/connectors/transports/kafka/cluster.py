"""A client of a Kafka cluster: its topics, their offsets, their messages. No consumer groups."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import confluent_kafka as kafka
from confluent_kafka import admin

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.client_settings import (
    broker_address,
    client_settings,
    tls_warnings,
)
from airflow_cdc_provider.connectors.transports.kafka.positions import Channel, OffsetRange, Span
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import PositionLost, Problem, SourceUnavailable

REQUEST_TIMEOUT_S = 30.0
ATTEMPT_TIMEOUT_S = 5.0
PERMANENT_ERRORS = re.compile("authentication|ssl", re.IGNORECASE)
"""Errors for which the library itself retries without end."""
READ_TIMEOUT_S = 60.0
BATCH, POLL_S = 2_000, 0.05
"""The library returns fewer messages only after this time: a read lasts so much longer than its last message."""
ERRORS_SHOWN = 3
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
READING = {
    "group.id": "airflow-cdc",  # required by the library; no group is joined, no offset is committed
    "enable.auto.commit": "false",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "1",  # wait when that queue is full; the default is a second
    "fetch.wait.max.ms": "100",
}


class Cluster:
    """Does no I/O on construction. Raises SourceUnavailable (SRC081) if a request fails."""

    def __init__(self, connection: ConnectionInfo) -> None:
        self._connection = connection
        self._errors: dict[str, None] = {}

    @cached_property
    def settings(self) -> dict[str, str]:
        return client_settings(self._connection)

    @property
    def address(self) -> str:
        return broker_address(self.settings)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self._connection)

    def identity(self) -> dict[str, str]:
        return {"cluster_id": str(self._metadata.cluster_id or "")}

    def topics(self) -> dict[str, list[int]]:
        """Topic → its partitions."""
        topics = {name: sorted(topic.partitions) for name, topic in self._metadata.topics.items() if not topic.error}
        return {name: partitions for name, partitions in sorted(topics.items()) if partitions}

    def missing_topics(self, topics: list[str]) -> set[str]:
        """Those of ``topics`` that do not exist. Fails for a topic that the connection may not describe."""
        missing = set()
        with self._translated_errors("describing topics"):
            for name, future in self._describe(topics).items() if topics else ():
                try:
                    future.result()
                except kafka.KafkaException as error:
                    if error.args[0].code() != kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                    missing.add(name)
        return missing

    def compacted_topics(self, topics: Sequence[str]) -> list[str]:
        """Those of ``topics`` with compaction; none if the connection may not read the configuration."""
        policies = self._settings(topics, "cleanup.policy")
        return [topic for topic, policy in policies.items() if "compact" in policy]

    def shortest_retention(self, topics: Sequence[str]) -> timedelta | None:
        """How long messages of every one of ``topics`` are kept; None if for ever, or if the connection may not read
        the configuration."""
        times = [int(text) for text in self._settings(topics, "retention.ms").values()]
        return min((timedelta(milliseconds=time) for time in times if time >= 0), default=None)

    def _settings(self, topics: Sequence[str], name: str) -> dict[str, str]:
        """Topic → value; without topics whose configuration the connection may not read."""
        resources = [admin.ConfigResource(admin.ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        values = {}
        for resource, future in self._admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S).items():
            with suppress(kafka.KafkaException):
                values[resource.name] = future.result()[name].value
        return values

    def spans(self, channels: Sequence[Channel]) -> dict[Channel, Span]:
        """The retained offsets of these partitions; ``end`` is that of the first open transaction, if there is one."""
        if not channels:
            return {}
        spec = admin.OffsetSpec
        with self._translated_errors("listing offsets"):
            begins = self._list_offsets(channels, spec.earliest())
            ends = self._list_offsets(channels, spec.latest())
            ids = self._topic_ids(sorted({channel.topic for channel in channels}))
            return {
                channel: Span(
                    begins[channel].result().offset, ends[channel].result().offset, ids.get(channel.topic, "")
                )
                for channel in channels
            }

    def offsets_at(self, channels: Sequence[Channel], at_ms: int) -> dict[Channel, int]:
        """The offset of each partition's first message written at ``at_ms`` or later; the end if there is none."""
        if not channels:
            return {}
        spans = self.spans(channels)
        with self._translated_errors("listing offsets"):
            futures = self._list_offsets(channels, admin.OffsetSpec.for_timestamp(at_ms))
            offsets = {channel: future.result().offset for channel, future in futures.items()}
        return {channel: offset if (offset := offsets[channel]) >= 0 else spans[channel].end for channel in channels}

    def last_arrival(self, channels: Sequence[Channel]) -> datetime | None:
        """The largest timestamp of a message in these partitions; None if they are empty."""
        if not channels:
            return None
        with self._translated_errors("listing offsets"):
            futures = self._list_offsets(channels, admin.OffsetSpec.max_timestamp())
            newest = max(future.result().timestamp for future in futures.values())
        return datetime.fromtimestamp(newest / 1000, UTC) if newest >= 0 else None

    def read(self, ranges: Sequence[OffsetRange], **settings: str) -> Iterator[Message]:
        """Every message in these ranges, in the order of each partition; at most one range per partition. ``settings``:
        additional ones of the library. Raises PositionLost (SRC082) if an offset is not retained any more."""
        unfinished = {(part.topic, part.partition): (part.stop, f"{part.topic}/{part.partition}") for part in ranges}
        eof, out_of_range = kafka.KafkaError._PARTITION_EOF, kafka.KafkaError._AUTO_OFFSET_RESET
        with self._consumer(settings) as consumer, self._translated_errors("reading"):
            consumer.assign([kafka.TopicPartition(part.topic, part.partition, part.start) for part in ranges])
            received_at = time.monotonic()
            while unfinished:
                batch = consumer.consume(BATCH, POLL_S)
                if batch:
                    received_at = time.monotonic()
                elif time.monotonic() - received_at > READ_TIMEOUT_S:
                    raise SourceUnavailable(self._problem("reading", f"no message for {READ_TIMEOUT_S:.0f} s"))
                for received in batch:
                    topic, partition, offset = received.topic(), received.partition(), received.offset()
                    stop_and_channel = unfinished.get((topic, partition))
                    error = received.error()
                    if error is not None and error.code() == out_of_range:
                        raise PositionLost(self._expired(topic, partition))
                    if error is not None and error.code() != eof:
                        raise kafka.KafkaException(error)
                    if stop_and_channel is None:
                        continue
                    stop, channel = stop_and_channel
                    if error is not None or offset >= stop:
                        del unfinished[topic, partition]
                        consumer.incremental_unassign([kafka.TopicPartition(topic, partition)])
                        continue
                    headers = received.headers()
                    yield Message(
                        received.value(),
                        received.key(),
                        tuple(headers) if headers else (),
                        topic,
                        channel,
                        offset,
                        received.timestamp()[1],
                    )

    @cached_property
    def _admin(self) -> Any:
        return admin.AdminClient({**self.settings, "error_cb": self._record_error})

    @cached_property
    def _metadata(self) -> Any:
        with self._translated_errors("listing topics"):
            deadline = time.monotonic() + REQUEST_TIMEOUT_S
            while True:
                try:
                    return self._admin.list_topics(timeout=ATTEMPT_TIMEOUT_S)
                except kafka.KafkaException:
                    self._admin.poll(0)
                    if time.monotonic() > deadline or any(PERMANENT_ERRORS.search(error) for error in self._errors):
                        raise

    def _list_offsets(self, channels: Sequence[Channel], spec: Any) -> dict[Channel, Any]:
        """Channel → future of its offset."""
        futures = self._admin.list_offsets(
            {kafka.TopicPartition(channel.topic, channel.partition): spec for channel in channels},
            isolation_level=kafka.IsolationLevel.READ_COMMITTED,
            request_timeout=REQUEST_TIMEOUT_S,
        )
        return {Channel(part.topic, part.partition): future for part, future in futures.items()}

    def _topic_ids(self, topics: list[str]) -> dict[str, str]:
        ids = {name: str(future.result().topic_id) for name, future in self._describe(topics).items()}
        return {name: topic_id for name, topic_id in ids.items() if topic_id != NO_ID}

    def _describe(self, topics: list[str]) -> dict[str, Any]:
        futures: dict[str, Any] = self._admin.describe_topics(
            kafka.TopicCollection(topics), request_timeout=REQUEST_TIMEOUT_S
        )
        return futures

    @contextmanager
    def _consumer(self, settings: Mapping[str, str]) -> Iterator[Any]:
        consumer = kafka.Consumer({**self.settings, **READING, **settings, "error_cb": self._record_error})
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def _translated_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except kafka.KafkaException as error:
            raise SourceUnavailable(self._problem(action, error.args[0].str())) from error

    def _record_error(self, error: Any) -> None:
        """A later timeout has one of these errors as its cause."""
        self._errors[str(error.str())] = None

    def _problem(self, action: str, found: str) -> Problem:
        self._admin.poll(0)
        return Problem(
            "SRC081",
            f"the Kafka cluster failed while {action}",
            where=f"{self.address}, connection {self._connection.connection_id}",
            found="; ".join([found, *list(self._errors)[:ERRORS_SHOWN]]),
            do="check servers, TLS and SASL settings of the connection, and its ACLs to describe and read topics",
            data="nothing was read after the last sealed window; the next run continues",
        )

    def _expired(self, topic: str, partition: int) -> Problem:
        return Problem(
            "SRC082",
            f"messages of {topic} were removed before they were read",
            where=f"{self.address}, partition {partition} of {topic}",
            found="an offset that the broker no longer has",
            do="start the run again: it reports what is lost and how to continue",
            data="nothing was read after the last sealed window",
        )
