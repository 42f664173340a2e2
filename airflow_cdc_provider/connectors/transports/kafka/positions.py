"""Positions in topics, and the ranges between them. Pure.

    <topic>/<partition>: <offset of the next message> <id of the topic>

A topic that is deleted and created again has another id, and its offsets start again. If the broker has no topic ids,
the first message of the partition stands for the id, as ``first:<offset>:<timestamp>``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_cdc_provider.core.log.positions import Position

FIRST = "first"
LOST = "lost"
"""Key in the limit of a window, beside the channels: the channels with lost messages."""
SPLIT_MESSAGES = 250_000
"""How many messages one task reads. An offset range may be split anywhere, because each message is decoded alone."""


class Channel(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class TopicOffset(NamedTuple):
    offset: int
    topic_id: str = ""

    def __str__(self) -> str:
        return f"{self.offset} {self.topic_id}".rstrip()


@dataclass(frozen=True)
class Span:
    """The retained offsets of a partition: ``begin`` to ``end``, exclusive."""

    begin: int
    end: int
    topic_id: str = ""


def first_message(begin: int, at_ms: int) -> str:
    """In place of the id of the topic."""
    return f"{FIRST}:{begin}:{at_ms}"


def is_created_again(before: str, now: str) -> bool:
    """By two ids, or by two first messages: retention removes messages, but none comes back. Unknown if one is empty or
    if they are not of the same kind."""
    known, found = (text.split(":") if text.startswith(f"{FIRST}:") else [] for text in (before, now))
    if known and found:
        return int(found[1]) < int(known[1]) or (found[1] == known[1] and found[2] != known[2])
    return bool(before and now) and not known and not found and before != now


class OffsetRange(NamedTuple):
    """``stop`` is exclusive."""

    topic: str
    partition: int
    start: int
    stop: int


def topic_offsets(position: Position) -> dict[Channel, TopicOffset]:
    """The offsets in a position, which can also have a key ``LOST``."""
    return {_channel(name): _topic_offset(text) for name, text in position.items() if "/" in name}


def position_of(offsets: Mapping[Channel, TopicOffset]) -> dict[str, str]:
    return {str(channel): str(offset) for channel, offset in offsets.items()}


def ranges_of(lo: Position, limit: Position) -> Iterator[OffsetRange]:
    """Omits channels with lost messages, which the caller reports as holes."""
    starts = topic_offsets(lo)
    lost = lost_channels(limit)
    for channel, end in sorted(topic_offsets(limit).items()):
        if str(channel) in lost:
            continue
        start = starts[channel].offset if channel in starts else 0
        while start < end.offset:
            stop = min(start + SPLIT_MESSAGES, end.offset)
            yield OffsetRange(channel.topic, channel.partition, start, stop)
            start = stop


def lost_channels(limit: Position) -> dict[str, str]:
    """Channel → description of the messages that are lost within the window."""
    lost: dict[str, str] = json.loads(limit.get(LOST, "{}"))
    return lost


def lost_topics(lost: Mapping[str, str]) -> dict[str, str]:
    """Topic → description of the messages that are lost in one of its partitions. ``lost``: by channel."""
    topics: dict[str, str] = {}
    for name, detail in lost.items():
        topics.setdefault(_channel(name).topic, detail)
    return topics


def pack_splits(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """Packs small ranges into one split: with one task per partition, most of the time is startup."""
    splits: list[list[OffsetRange]] = []
    room = 0
    for part in sorted(ranges, key=lambda part: part.start - part.stop):
        size = part.stop - part.start
        if not splits or size > room:
            splits.append([])
            room = SPLIT_MESSAGES
        splits[-1].append(part)
        room -= size
    return splits


def contains_all_after(start: Position, end: Position, spans: Mapping[Channel, Span], topics: Collection[str]) -> bool:
    """None of these topics was read up to ``start``, and each retains its messages after ``end``."""
    start_offsets, end_offsets = topic_offsets(start), topic_offsets(end)
    of_topics = {channel: span for channel, span in spans.items() if channel.topic in topics}
    unread = all(start_offsets[channel].offset == 0 for channel in of_topics if channel in start_offsets)
    retained = all(span.begin <= end_offsets.get(channel, TopicOffset(0)).offset for channel, span in of_topics.items())
    return bool(of_topics) and unread and retained


def _channel(name: str) -> Channel:
    topic, _, partition = name.rpartition("/")
    return Channel(topic, int(partition))


def _topic_offset(text: str) -> TopicOffset:
    offset, _, topic_id = text.partition(" ")
    return TopicOffset(int(offset), topic_id)
