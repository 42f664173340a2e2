"""Topics as a source connector."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from airflow_cdc_provider.connectors.decoders.common.dead_letters import BY_LINE
from airflow_cdc_provider.connectors.decoders.common.message import HasTombstones, Message
from airflow_cdc_provider.connectors.source import Boundary, Copy, HoleFound, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.source_features import Restart
from airflow_cdc_provider.connectors.transports.kafka.cluster import Cluster
from airflow_cdc_provider.connectors.transports.kafka.lost_deletes import LostDeletes
from airflow_cdc_provider.connectors.transports.kafka.new_snapshots import cut_before
from airflow_cdc_provider.connectors.transports.kafka.options import KafkaOptions
from airflow_cdc_provider.connectors.transports.kafka.positions import (
    LOST,
    Channel,
    OffsetRange,
    Span,
    contains_all_after,
    first_message,
    lost_channels,
    lost_topics,
    pack_splits,
    ranges_of,
    topic_offsets,
)
from airflow_cdc_provider.connectors.transports.kafka.topic_status import read_status
from airflow_cdc_provider.connectors.transports.kafka.topic_tables import TopicTables
from airflow_cdc_provider.connectors.transports.messages.check import rule_problems
from airflow_cdc_provider.connectors.transports.messages.decoding import message_reader
from airflow_cdc_provider.connectors.transports.messages.empty_copy import empty_copy
from airflow_cdc_provider.connectors.transports.messages.feed_source import FeedSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, raise_problems
from airflow_cdc_provider.core.log.change_log import EXPIRED
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.log.retained_log import RetainedLog
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.spec.selection import matches
from airflow_cdc_provider.core.table.schema import TableSchema

HEAD_MESSAGES = 20
ORDERED_BY_OFFSET, UNWRAPPED = ("ydb",), "unwrapped"
"""The formats, and the option of a format, whose changes may have no position but their offset."""
SMALL_FETCH = {"queued.max.messages.kbytes": "2048", "fetch.message.max.bytes": "65536"}
"""Settings to read the first messages of many topics: by default the library prefetches many more."""


class KafkaSource(FeedSource):
    """Each partition is a channel. A topic is read only if it may contain a table that is copied: a table that is added
    later is read from the beginning of its topic."""

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = from_plain(KafkaOptions, source.options)
        super().__init__(source, self.options)
        self.cluster = Cluster(connection)

    def tls_warnings(self) -> list[Problem]:
        return [*self.cluster.tls_warnings(), *super().tls_warnings()]

    def identity(self) -> dict[str, str]:
        return self.cluster.identity()

    def open_stream(self, tables: Sequence[str]) -> Position:
        """The position before the first message of every topic."""
        return {}

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        read = {channel.topic for channel in topic_offsets(position)}
        topics = self._topics_of(tables, read)
        spans = {channel: self._identified(channel) for channel in self._spans if channel.topic in topics}
        unlisted = {topic for topic in read if self._is_ours(topic)} - {channel.topic for channel in self._spans}
        topic_tables = self._topic_tables()
        former = {
            topic: topic_tables.own_topics_of(names) - {topic}
            for table, names in self.former_names_of_all().items()
            for topic in topic_tables.own_topics_of([table])
        }
        grown = {channel.topic for channel in spans.keys() - topic_offsets(position).keys()} & read
        by_offset = {topic for topic in grown if self._is_ordered_by_offset(topic)}
        return read_status(position, spans, self.cluster.missing_topics(sorted(unlisted)), former, by_offset)

    def _is_ordered_by_offset(self, topic: str) -> bool:
        """By the first messages: those of a file, whose lines have no offsets, could not be ordered."""
        if self.format.name not in ORDERED_BY_OFFSET and not self.format.options.get(UNWRAPPED):
            return False
        decoder = self.format.decoder()
        lines = [head._replace(by_line=True) for head in self._heads if head.topic == topic]
        records = [item for line in lines for item in decoder.decode(line) if isinstance(item, ChangeRecord)]
        return any(BY_LINE in content.reason for content in map(undecoded, records) if content is not None)

    def splits(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """An additional split reports lost messages."""
        end = {name: text for name, text in limit.items() if name != LOST}
        bodies = [{"ranges": json.dumps(split)} for split in pack_splits(list(ranges_of(lo, limit)))]
        if lost := lost_channels(limit):
            bodies.append({"ranges": "[]", "gone": json.dumps(lost_topics(lost))})
        return [StreamSplit(lo, end, body) for body in bodies]

    def read(self, split: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        for topic, detail in json.loads(split.body.get("gone", "{}")).items():
            for table in self._tables_in(topic, tables) or [""]:
                yield HoleFound(table, EXPIRED, "", detail)
        reader = message_reader(self.format, tables, epoch, self.read_statements)
        if ranges := [OffsetRange(*fields) for fields in json.loads(split.body["ranges"])]:
            lost = LostDeletes(ranges)
            messages = self.cluster.read(ranges)
            follow = isinstance(reader.decoder, HasTombstones) and reader.decoder.tombstones_follow_deletes
            yield from reader.items(lost.watch(messages) if follow else messages)
            for topic, detail in lost.topics.items():
                for table in self._tables_in(topic, tables) or [""]:
                    yield HoleFound(table, EXPIRED, "", detail)
        yield Boundary(split.limit)

    def channels(self, position: Position) -> Collection[str]:
        return [str(channel) for channel in topic_offsets(position)]

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """Empty: the topics contain the table from its beginning. Its columns are those of the first messages after
        ``sealed``: after a new snapshot of the connector they can differ from the earlier ones."""
        raise_problems(rule_problems(table))
        return empty_copy(replace(table, schema=self._schema_after_snapshot(sealed, table)), epoch, sealed)

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        names = self.names_of(table)
        topic_tables = self._topic_tables(names)
        topics = topic_tables.own_topics_of(names) or topic_tables.topics_of(names)
        return contains_all_after(start, end, self._spans, topics)

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
        tables: Sequence[str],
    ) -> Restart:
        """The topics of a connector have its name as prefix, except rerouted ones."""
        prefix = f"{began.source}."
        rerouted = {snapshot.topic for snapshot in snapshots if snapshot.source == began.source}
        channels = [c for c in self._spans if c.topic in rerouted or c.topic.startswith(prefix)]
        done = {snapshot.topic for snapshot in known if snapshot.place == began.place}
        starts = self.cluster.offsets_at(channels, began.at_ms)
        cut = cut_before(lo, limit, starts, self._spans, done)
        found = {topic: self.discovered.topics.get(topic, frozenset[str]()) for topic in cut.topics}
        late = frozenset(table for table in tables if self._is_late_in(cut.topics, table))
        return Restart(cut.limit, {**found, "": late} if late else found)

    @cached_property
    def _spans(self) -> dict[Channel, Span]:
        channels = [
            Channel(topic, partition)
            for topic, partitions in self.cluster.topics().items()
            if self._is_ours(topic)
            for partition in partitions
        ]
        return self.cluster.spans(channels)

    def _identified(self, channel: Channel) -> Span:
        """With its first message, if the broker has no topic ids."""
        span, first = self._spans[channel], self._first_times.get(str(channel))
        return span if span.topic_id or first is None else replace(span, topic_id=first_message(span.begin, first))

    @cached_property
    def _first_times(self) -> dict[str, int]:
        """Channel → the time of its first message."""
        newest_first = sorted(self._raw_heads, key=lambda message: -message.offset)
        return {message.channel: message.at_ms for message in newest_first}

    def last_arrival(self) -> datetime | None:
        """Of all topics of `topics`, so that one of heartbeats may be among them."""
        return self.cluster.last_arrival(list(self._spans))

    def retained_log(self, position: Position | None) -> RetainedLog:
        """By age. A limit of a partition in bytes has no time."""
        return RetainedLog(keeps=self.cluster.shortest_retention(sorted({channel.topic for channel in self._spans})))

    def read_heads(self) -> list[Message]:
        return self._heads_at({channel: span.begin for channel, span in self._spans.items()})

    def read_statements(self) -> list[Message]:
        """Up to now, and not to the end of the window: a connector sends a statement before the rows that follow it,
        but the topics have no common order."""
        channels = [channel for channel in self._spans if channel.topic in self.discovered.schema_topics]
        spans = self.cluster.spans(channels).items()
        ranges = [OffsetRange(one.topic, one.partition, span.begin, span.end) for one, span in spans]
        ranges = [one for one in ranges if one.start < one.stop]
        return list(self.cluster.read(ranges)) if ranges else []

    def _heads_at(self, starts: Mapping[Channel, int]) -> list[Message]:
        heads = [
            OffsetRange(channel.topic, channel.partition, start, min(self._spans[channel].end, start + HEAD_MESSAGES))
            for channel, start in starts.items()
            if start < self._spans[channel].end
        ]
        return list(self.cluster.read(heads, **SMALL_FETCH)) if heads else []

    def _schema_after_snapshot(self, position: Position, table: TableTask) -> TableSchema:
        names = self.names_of(table.name_in_source)
        topics = self._topic_tables(names).own_topics_of(names)
        starts = {
            channel: max(read.offset, self._spans[channel].begin)
            for channel, read in topic_offsets(position).items()
            if channel.topic in topics and channel in self._spans
        }
        discovered = self.discover(self.format.converter.messages(self._heads_at(starts)))
        schema = self.first_schema(discovered, table.name_in_source)
        return selected_schema(table.rule, replace(schema, table=table.table)) if schema else table.schema

    def _is_ours(self, topic: str) -> bool:
        return any(matches(pattern, topic) for pattern in self.options.topics)

    def _topics_of(self, tables: Sequence[str], read: set[str]) -> set[str]:
        """The topics that may contain our tables, and topics that were read before and have no rows now."""
        empty = {channel.topic for channel in self._spans if not self.discovered.topics.get(channel.topic)}
        return self._topics_with(tables) | (read & empty)

    def _topics_with(self, tables: Sequence[str]) -> set[str]:
        names = [self.names_of(table) for table in tables]
        topic_tables = self._topic_tables(frozenset[str]().union(*names))
        return set[str]().union(*map(topic_tables.topics_of, names))

    def _tables_in(self, topic: str, tables: Sequence[TableTask]) -> list[str]:
        """Those of ``tables`` that the topic may contain; it may be one that does not exist any more."""
        names = self._names_of_each(tables)
        topic_tables = self._topic_tables(frozenset[str]().union(*names.values()), [topic])
        return sorted(table for table, of_table in names.items() if topic in topic_tables.topics_of(of_table))

    def _names_of_each(self, tables: Sequence[TableTask]) -> dict[str, frozenset[str]]:
        return {task.table: self.names_of(task.name_in_source) for task in tables}

    def _is_late_in(self, topics: Collection[str], table: str) -> bool:
        """Whether the first messages of no topic show the table, and these topics may contain it."""
        names = self.names_of(table)
        topic_tables = self._topic_tables(names)
        return not topic_tables.own_topics_of(names) and not topic_tables.topics_of(names).isdisjoint(topics)

    def _topic_tables(self, names: Collection[str] = (), former: Collection[str] = ()) -> TopicTables:
        """``names``: tables beside those of the first messages. ``former``: topics beside those that exist."""
        topics = {*former, *(channel.topic for channel in self._spans)}
        first = {topic: self.discovered.topics.get(topic, frozenset[str]()) for topic in topics}
        known = self.discovered.tables.union(self.discovered.schemas, names)
        found = self.discovered
        others = {topic for topic, tables in found.topics.items() if not tables and topic not in found.schema_topics}
        return TopicTables(first, known, others, self.format.decoder().one_table_per_topic)

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        """Those in compacted topics."""
        compacted = self._compacted_in(tables)
        if not compacted:
            return {}
        names = self._names_of_each(tables)
        topic_tables = self._topic_tables(frozenset[str]().union(*names.values()))
        found = {table: topic_tables.topics_of(own).intersection(compacted) for table, own in names.items()}
        return {table: replace(_compacted(min(own)), table=table) for table, own in found.items() if own}

    def transport_problems(self, tables: Sequence[TableTask]) -> Iterator[Problem]:
        yield from map(_compacted, self._compacted_in(tables))
        yield from self.topic_problems()

    def _compacted_in(self, tables: Sequence[TableTask]) -> list[str]:
        return self.cluster.compacted_topics(sorted(self._topics_with([task.name_in_source for task in tables])))

    def topic_problems(self) -> Iterator[Problem]:
        """Without reading messages."""
        if not self._spans:
            yield Problem(
                "SRC083",
                "no topic to read was found",
                where=self.cluster.address,
                found="no match among the topics that the connection can see",
                allowed=", ".join(self.options.topics),
                do="correct `topics`, or grant the connection's user DESCRIBE and READ on them",
            )


def _compacted(topic: str) -> Problem:
    return Problem(
        "SRC078",
        f"messages of {topic} may be removed by compaction before they are read",
        where=f"topic {topic}",
        found="cleanup.policy = compact: only the last message of a key is retained, and none after a delete",
        allowed="cleanup.policy = delete, and a retention that is longer than any pause of the replicator",
        do=f"kafka-configs.sh --alter --topic {topic} --add-config cleanup.policy=delete",
        data="a row stays in the copy if its delete is removed before it is read; no run applies changes of the topic",
    )
