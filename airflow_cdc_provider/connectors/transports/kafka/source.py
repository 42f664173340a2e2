"""Topics as a source connector."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import ClassVar

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import (
    Boundary,
    Copy,
    HoleFound,
    Restart,
    SourceStatus,
    StreamItem,
    StreamSplit,
)
from airflow_cdc_provider.connectors.transports.kafka.cluster import Cluster
from airflow_cdc_provider.connectors.transports.kafka.new_snapshots import cut_before
from airflow_cdc_provider.connectors.transports.kafka.options import read_options
from airflow_cdc_provider.connectors.transports.kafka.positions import (
    LOST,
    Channel,
    Range,
    Span,
    contains_all_after,
    in_splits,
    lost_of,
    ranges_of,
    topic_offsets,
)
from airflow_cdc_provider.connectors.transports.kafka.topic_status import read_status
from airflow_cdc_provider.connectors.transports.messages.check import refuse, rule_problems, table_problems
from airflow_cdc_provider.connectors.transports.messages.declared_schemas import declared_schemas
from airflow_cdc_provider.connectors.transports.messages.decoding import Format, reading
from airflow_cdc_provider.connectors.transports.messages.discovery import DiscoveredTables, discovered, undiscovered
from airflow_cdc_provider.connectors.transports.messages.empty_copy import empty_copy
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.change_log import EXPIRED
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.selection import matches, selected_schema
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import FEED, Specials, may_hold

HEAD_MESSAGES = 20
LITTLE = {"queued.max.messages.kbytes": "2048", "fetch.message.max.bytes": "65536"}
"""For the first messages of many topics: the library would fetch as many more as it has room for."""


class KafkaSource:
    """Each partition is a channel of its own. Topics are read when a table of theirs is copied, so that one that is
    added later is read from its beginning."""

    unseen: ClassVar[str] = (
        "whatever its connector or feed did not write, schema changes that rewrite rows among it: "
        "docs/guides/event-feeds.md"
    )
    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = True
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, connection: ConnectionInfo, replicator: str) -> None:
        self.options = read_options(source.options)
        self.format = Format(self.options.format, source.options)
        self.cluster = Cluster(connection)

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        try:
            rowless = undiscovered(self.format, self._heads, self._told.schemas)
            return [*self._topic_problems(tables), *table_problems(tables, self._told, rowless)]
        except CheckFailed as error:
            return list(error.problems)

    def unverified(self) -> list[Problem]:
        return self.cluster.unverified()

    def identity(self) -> dict[str, str]:
        return self.cluster.identity()

    def tables(self) -> list[TableSchema]:
        """Those that the first messages of the topics tell, and those that are declared."""
        return [schema for _, schema in sorted(self._told.schemas.items())]

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, FEED)

    def open_stream(self, tables: Sequence[str]) -> Position:
        """Before the first message of every topic, whatever was read before."""
        return {}

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        read = {channel.topic for channel in topic_offsets(position)}
        wanted = self._topics_of(tables, read)
        spans = {channel: span for channel, span in self._spans.items() if channel.topic in wanted}
        unseen = {topic for topic in read if self._is_ours(topic)} - {channel.topic for channel in self._spans}
        return read_status(position, spans, self.cluster.vanished(sorted(unseen)))

    def acknowledge(self, position: Position) -> None:
        """Messages are kept by the topic's own clock."""

    def drop_stream(self) -> None:
        """Nothing is kept for us."""

    def partitions(self, lo: Position, limit: Position) -> list[StreamSplit]:
        """One more for what is gone."""
        end = {name: text for name, text in limit.items() if name != LOST}
        bodies = [{"ranges": json.dumps(share)} for share in in_splits(list(ranges_of(lo, limit)))]
        if gone := lost_of(limit):
            bodies.append({"ranges": "[]", "gone": json.dumps(self._reported_lost(gone))})
        return [StreamSplit(lo, end, body) for body in bodies]

    def read(self, partition: StreamSplit, tables: Sequence[TableTask], epoch: int) -> Iterator[StreamItem]:
        for what, of in json.loads(partition.body.get("gone", "[]")):
            names = {task.table for task in tables}
            for table in of or sorted(names - self._told.tables) or [""]:
                yield HoleFound(table, EXPIRED, "", what)
        made = reading(self.format, tables, epoch)
        if ranges := [Range(*one) for one in json.loads(partition.body["ranges"])]:
            yield from made.items(self.cluster.read(ranges))
        yield Boundary(partition.limit)

    def channels(self, position: Position) -> Collection[str]:
        return [str(channel) for channel in topic_offsets(position)]

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return self.format.reread(record, table, schema)

    def copy(self, table: TableTask, epoch: int, sealed: Position, cores: int) -> AbstractContextManager[Copy]:
        """The topics hold the first copy themselves. It has the columns that the first messages behind it tell: a
        connector that copied its tables anew tells the table as it is by then."""
        refuse(rule_problems(table))
        return empty_copy(replace(table, schema=self._schema_after_snapshot(sealed, table)), epoch, sealed)

    def contains_all_after(self, start: Position, end: Position, table: str) -> bool:
        return contains_all_after(start, end, self._spans, self._told.topics_of([table]))

    def restart(
        self,
        lo: Position,
        limit: Position,
        began: SourceSnapshot,
        snapshots: Sequence[SourceSnapshot],
        known: Sequence[SourceSnapshot],
    ) -> Restart:
        """Topics bear the connector's name, unless something routes them elsewhere."""
        routed = {one.topic for one in snapshots if one.source == began.source}
        channels = [one for one in self._spans if one.topic in routed or one.topic.startswith(f"{began.source}.")]
        told = {one.topic for one in known if one.place == began.place}
        starts = self.cluster.offsets_at(channels, began.at_ms)
        cut = cut_before(lo, limit, starts, self._spans, told)
        return Restart(cut.limit, {topic: self._told.topics.get(topic, frozenset()) for topic in cut.topics})

    @cached_property
    def _spans(self) -> dict[Channel, Span]:
        channels = [
            Channel(topic, partition)
            for topic, partitions in self.cluster.topics().items()
            if self._is_ours(topic)
            for partition in partitions
        ]
        return self.cluster.spans(channels)

    @cached_property
    def _heads(self) -> list[Message]:
        return self._heads_at({channel: span.begin for channel, span in self._spans.items()})

    def _heads_at(self, starts: Mapping[Channel, int]) -> list[Message]:
        heads = [
            Range(channel.topic, channel.partition, start, min(self._spans[channel].end, start + HEAD_MESSAGES))
            for channel, start in starts.items()
            if start < self._spans[channel].end
        ]
        return list(self.cluster.read(heads, **LITTLE)) if heads else []

    @cached_property
    def _told(self) -> DiscoveredTables:
        return discovered(self.format, self._heads, self._declared)

    @cached_property
    def _declared(self) -> Mapping[str, TableSchema]:
        return declared_schemas(self.options.schemas)

    def _schema_after_snapshot(self, position: Position, table: TableTask) -> TableSchema:
        topics = self._told.topics_of([table.table])
        starts = {
            channel: max(place.offset, self._spans[channel].begin)
            for channel, place in topic_offsets(position).items()
            if channel.topic in topics and channel in self._spans
        }
        found = discovered(self.format, self._heads_at(starts), self._declared).schemas.get(table.table)
        return selected_schema(table.rule, found) if found else table.schema

    def _is_ours(self, topic: str) -> bool:
        return any(matches(pattern, topic) for pattern in self.options.topics)

    def _reported_lost(self, gone: Mapping[str, str]) -> list[tuple[str, list[str]]]:
        """What is gone, and of which tables: those of the topic; none where it tells none any more."""
        topics: dict[str, str] = {}
        for channel, what in gone.items():
            topics.setdefault(channel.rpartition("/")[0], what)
        return [(what, sorted(self._told.topics.get(topic, ()))) for topic, what in topics.items()]

    def _topics_of(self, tables: Sequence[str], read: set[str]) -> set[str]:
        """Those of our tables; and what was read before and tells nothing now, for it was theirs."""
        silent = {channel.topic for channel in self._spans if not self._told.topics.get(channel.topic)}
        return {*self._told.topics_of(tables), *(read & silent)}

    def _topic_problems(self, tables: Sequence[TableTask]) -> Iterator[Problem]:
        for topic in self.cluster.compacted(self._told.topics_of(task.table for task in tables)):
            yield _compacted(topic)
        if not self._spans:
            yield Problem(
                "SRC083",
                "no topic is there to be read",
                where=self.cluster.place,
                found="no match among the topics that the connection can see",
                allowed=", ".join(self.options.topics),
                do="mend `topics`, or let the connection's user describe and read them",
            )


def _compacted(topic: str) -> Problem:
    return Problem(
        "SRC078",
        f"messages of {topic} may go before anybody has read them",
        where=f"topic {topic}",
        found="cleanup.policy = compact: of the messages of a key the last one stays, and after a delete none",
        allowed="cleanup.policy = delete, and a retention that outlasts a pause of the replicator",
        do=f"kafka-configs.sh --alter --topic {topic} --add-config cleanup.policy=delete",
        data="a row whose delete went unread stays in the copy",
    )
