"""Places in topics, and what of a topic lies behind one. Pure.

    <topic>/<partition>: <offset of the next message> <id of the topic>

A topic that is deleted and made again has another id: its offsets begin anew and mean nothing of what was. A broker
that knows no ids tells none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_cdc_provider.core.log.positions import Position

LOST = "lost"
"""A name that no channel bears, in the end of a window: what of which channel is gone."""
SHARE_MESSAGES = 250_000
"""What one task reads: an offset range may be split anywhere, since a message is decoded by itself."""


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
    """What a partition serves now: from ``begin`` up to, without it, ``end``."""

    begin: int
    end: int
    topic_id: str = ""


class Range(NamedTuple):
    topic: str
    partition: int
    start: int
    stop: int


def topic_offsets(position: Position) -> dict[Channel, TopicOffset]:
    """Without what else the end of a window says."""
    return {_channel(name): _place(text) for name, text in position.items() if "/" in name}


def position_of(places: Mapping[Channel, TopicOffset]) -> dict[str, str]:
    return {str(channel): str(place) for channel, place in places.items()}


def ranges_of(lo: Position, limit: Position) -> Iterator[Range]:
    """What is gone is stepped over here: whoever asks for ranges tells of it beside them."""
    places = topic_offsets(lo)
    gone = lost_of(limit)
    for channel, place in sorted(topic_offsets(limit).items()):
        at = places[channel].offset if channel in places else 0
        if str(channel) in gone:
            continue
        while at < place.offset:
            stop = min(at + SHARE_MESSAGES, place.offset)
            yield Range(channel.topic, channel.partition, at, stop)
            at = stop


def lost_of(limit: Position) -> dict[str, str]:
    """Channel → what of it is gone between the place of the window's beginning and that of its end."""
    told: dict[str, str] = json.loads(limit.get(LOST, "{}"))
    return told


def in_splits(ranges: Sequence[Range]) -> list[list[Range]]:
    """Small ranges are put together: a task per partition would spend its time on beginning."""
    shares: list[list[Range]] = []
    room = 0
    for one in sorted(ranges, key=lambda one: one.start - one.stop):
        size = one.stop - one.start
        if not shares or size > room:
            shares.append([])
            room = SHARE_MESSAGES
        shares[-1].append(one)
        room -= size
    return shares


def contains_all_after(start: Position, end: Position, spans: Mapping[Channel, Span], topics: Collection[str]) -> bool:
    """None of these topics has been read at ``start``, and each serves what lies behind ``end``."""
    begun, read = topic_offsets(start), topic_offsets(end)
    theirs = {channel: span for channel, span in spans.items() if channel.topic in topics}
    untouched = all(begun[channel].offset == 0 for channel in theirs if channel in begun)
    served = all(span.begin <= read.get(channel, TopicOffset(0)).offset for channel, span in theirs.items())
    return bool(theirs) and untouched and served


def _channel(name: str) -> Channel:
    topic, _, partition = name.rpartition("/")
    return Channel(topic, int(partition))


def _place(text: str) -> TopicOffset:
    offset, _, topic_id = text.partition(" ")
    return TopicOffset(int(offset), topic_id)
