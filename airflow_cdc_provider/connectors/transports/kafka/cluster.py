"""What is asked of a cluster: its topics, what they serve, and messages. No consumer groups."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.client_settings import broker_address, client_settings, unverified
from airflow_cdc_provider.connectors.transports.kafka.positions import Channel, Range, Span
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import NotInstalled, PositionLost, Problem, SourceUnavailable

ANSWER_S = 30.0
TRY_S = 5.0
HOPELESS = re.compile("authentication|ssl", re.IGNORECASE)
"""What the library says, and tries again for ever all the same."""
SILENCE_S = 60.0
BATCH = 2_000
ERRORS_SHOWN = 3
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
READING = {
    "group.id": "airflow-cdc",  # the library asks for one; nothing is ever joined or committed
    "enable.auto.commit": "false",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "1",  # when that is full; the library would rest for a second
    "fetch.wait.max.ms": "100",
}
T = TypeVar("T")


class Cluster:
    """Touches nothing until asked. Raises SourceUnavailable (SRC081) where it does not answer."""

    def __init__(self, connection: ConnectionInfo) -> None:
        self._connection = connection
        self._errors: dict[str, None] = {}

    @cached_property
    def settings(self) -> dict[str, str]:
        return client_settings(self._connection)

    @property
    def place(self) -> str:
        return broker_address(self.settings)

    def unverified(self) -> list[Problem]:
        return unverified(self._connection)

    def identity(self) -> dict[str, str]:
        return {"cluster_id": str(self._metadata.cluster_id or "")}

    def topics(self) -> dict[str, list[int]]:
        """Topic → its partitions."""
        found = {name: sorted(topic.partitions) for name, topic in self._metadata.topics.items() if not topic.error}
        return {name: partitions for name, partitions in sorted(found.items()) if partitions}

    def vanished(self, topics: list[str]) -> set[str]:
        """Those of them that do not exist. One that may not be seen is another matter: it fails."""
        found = set()
        kafka = _library()
        with self._guarded("asking for topics"):
            for name, future in self._described(topics).items() if topics else ():
                try:
                    future.result()
                except kafka.KafkaException as error:
                    if error.args[0].code() != kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                    found.add(name)
        return found

    def compacted(self, topics: Sequence[str]) -> list[str]:
        """Those of them that do not keep every message until it is old; none where that may not be asked."""
        kafka, admin_of = _library(), _admin_library()
        asked = [admin_of.ConfigResource(admin_of.ResourceType.TOPIC, topic) for topic in topics]
        found = []
        for resource, future in self._admin.describe_configs(asked, request_timeout=ANSWER_S).items() if asked else ():
            with suppress(kafka.KafkaException):
                if "compact" in future.result()["cleanup.policy"].value:
                    found.append(resource.name)
        return found

    def spans(self, channels: Sequence[Channel]) -> dict[Channel, Span]:
        """What these partitions serve; ``end`` is behind the last message that no open transaction holds back."""
        if not channels:
            return {}
        kafka = _library()
        admin_of = _admin_library()
        wanted = {channel: kafka.TopicPartition(channel.topic, channel.partition) for channel in channels}
        isolation = kafka.IsolationLevel.READ_COMMITTED
        with self._guarded("asking for offsets"):
            asked = {
                name: self._admin.list_offsets(
                    {one: getattr(admin_of.OffsetSpec, name)() for one in wanted.values()},
                    isolation_level=isolation,
                    request_timeout=ANSWER_S,
                )
                for name in ("earliest", "latest")
            }
            told = {
                name: {Channel(one.topic, one.partition): future.result().offset for one, future in futures.items()}
                for name, futures in asked.items()
            }
            ids = self._ids(sorted({channel.topic for channel in channels}))
        return {
            channel: Span(told["earliest"][channel], told["latest"][channel], ids.get(channel.topic, ""))
            for channel in channels
        }

    def offsets_at(self, channels: Sequence[Channel], at_ms: int) -> dict[Channel, int]:
        """The first message of each partition that was written at ``at_ms`` or later; the end where there is none."""
        if not channels:
            return {}
        kafka, admin_of = _library(), _admin_library()
        wanted = {
            kafka.TopicPartition(one.topic, one.partition): admin_of.OffsetSpec.for_timestamp(at_ms) for one in channels
        }
        ends = self.spans(channels)
        with self._guarded("asking for offsets"):
            asked = self._admin.list_offsets(
                wanted, isolation_level=kafka.IsolationLevel.READ_COMMITTED, request_timeout=ANSWER_S
            )
            told = {Channel(one.topic, one.partition): future.result().offset for one, future in asked.items()}
        return {one: offset if (offset := told[one]) >= 0 else ends[one].end for one in channels}

    def read(self, ranges: Sequence[Range], **settings: str) -> Iterator[Message]:
        """Every message in these ranges, at most one of a partition, in the order of each. Raises PositionLost (SRC082)
        where one of them is not served any more. ``settings`` of the library beside those that all reading needs."""
        kafka = _library()
        left = {(one.topic, one.partition): (one.stop, f"{one.topic}/{one.partition}") for one in ranges}
        eof, gone = kafka.KafkaError._PARTITION_EOF, kafka.KafkaError._AUTO_OFFSET_RESET
        with self._consumer(settings) as consumer, self._guarded("reading"):
            consumer.assign([kafka.TopicPartition(one.topic, one.partition, one.start) for one in ranges])
            heard = time.monotonic()
            while left:
                batch = consumer.consume(BATCH, 1.0)
                if batch:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_S:
                    raise SourceUnavailable(self._problem("reading", f"silence for {SILENCE_S:.0f} s"))
                for told in batch:
                    topic, partition, offset = told.topic(), told.partition(), told.offset()
                    range_ = left.get((topic, partition))
                    error = told.error()
                    if error is not None and error.code() == gone:
                        raise PositionLost(self._gone(topic, partition))
                    if error is not None and error.code() != eof:
                        raise kafka.KafkaException(error)
                    if range_ is None:
                        continue
                    stop, channel = range_
                    if error is not None or offset >= stop:
                        del left[topic, partition]
                        consumer.incremental_unassign([kafka.TopicPartition(topic, partition)])
                        continue
                    headers = told.headers()
                    yield Message(
                        told.value(),
                        told.key(),
                        tuple(headers) if headers else (),
                        topic,
                        channel,
                        offset,
                        told.timestamp()[1],
                    )

    @cached_property
    def _admin(self) -> Any:
        return _admin_library().AdminClient({**self.settings, "error_cb": self._note})

    @cached_property
    def _metadata(self) -> Any:
        kafka = _library()
        with self._guarded("asking for topics"):
            give_up = time.monotonic() + ANSWER_S
            while True:
                try:
                    return self._admin.list_topics(timeout=TRY_S)
                except kafka.KafkaException:
                    self._admin.poll(0)
                    if time.monotonic() > give_up or any(HOPELESS.search(one) for one in self._errors):
                        raise

    def _ids(self, topics: list[str]) -> dict[str, str]:
        told = {name: str(future.result().topic_id) for name, future in self._described(topics).items()}
        return {name: one for name, one in told.items() if one != NO_ID}

    def _described(self, topics: list[str]) -> dict[str, Any]:
        futures: dict[str, Any] = self._admin.describe_topics(
            _library().TopicCollection(topics), request_timeout=ANSWER_S
        )
        return futures

    @contextmanager
    def _consumer(self, settings: Mapping[str, str]) -> Iterator[Any]:
        consumer = _library().Consumer({**self.settings, **READING, **settings, "error_cb": self._note})
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        kafka = _library()
        try:
            yield
        except kafka.KafkaException as error:
            raise SourceUnavailable(self._problem(doing, error.args[0].str())) from error

    def _note(self, error: Any) -> None:
        """What the library says by the way tells why it later runs out of time."""
        self._errors[str(error.str())] = None

    def _problem(self, doing: str, found: str) -> Problem:
        self._admin.poll(0)
        return Problem(
            "SRC081",
            f"the Kafka cluster failed us in {doing}",
            where=f"{self.place}, connection {self._connection.connection_id}",
            found="; ".join([found, *list(self._errors)[:ERRORS_SHOWN]]),
            do="see to servers, TLS and SASL settings of the connection, and to the right to describe and read topics",
            data="nothing was read beyond the last sealed window; the next run goes on",
        )

    def _gone(self, topic: str, partition: int) -> Problem:
        return Problem(
            "SRC082",
            f"messages of {topic} went while they were to be read",
            where=f"{self.place}, partition {partition} of {topic}",
            found="an offset that is not served any more",
            do="start the run again: it says what is lost and what to do",
            data="nothing was read beyond the last sealed window",
        )


def _library() -> Any:
    """Raises NotInstalled (ENV010)."""
    return _imported(lambda: __import__("confluent_kafka"))


def _admin_library() -> Any:
    return _imported(lambda: __import__("confluent_kafka.admin", fromlist=["AdminClient"]))


def _imported(load: Callable[[], T]) -> T:
    try:
        return load()
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                "source type kafka needs a package that is not installed",
                found=f"no package {error.name}",
                do="pip install 'airflow-cdc-provider[kafka]'",
            )
        ) from error
