"""Places in topics, and what of a topic lies behind one. Pure.

    <topic>/<partition>: <offset of the next message> <id of the topic>

A topic that is deleted and made again has another id: its offsets begin anew and mean nothing of what was. A broker
that knows no ids tells none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from airflow_cdc_provider.connectors.source import News
from airflow_cdc_provider.core.errors import PositionLost, Problem
from airflow_cdc_provider.core.positions import Position

WINDOW_MESSAGES = 2_000_000
SHARE_MESSAGES = 250_000
"""What one task reads: an offset range may be split anywhere, since a message is decoded by itself."""


class Channel(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Place(NamedTuple):
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


def places_of(position: Position) -> dict[Channel, Place]:
    return {_channel(name): _place(text) for name, text in position.items()}


def position_of(places: Mapping[Channel, Place]) -> dict[str, str]:
    return {str(channel): str(place) for channel, place in places.items()}


def news_behind(position: Position, spans: Mapping[Channel, Span], cluster: str) -> News:
    """``spans``: the partitions of the topics that our tables are in. Raises PositionLost (SRC080) where something
    between our place and what is served is gone. A topic that was never read, and whose first messages are gone, is
    left out: its tables cannot be copied."""
    places = places_of(position)
    known = {channel.topic for channel in places}
    starts: dict[Channel, int] = {}
    for channel, span in spans.items():
        place = places.get(channel)
        if place is None and span.begin > 0 and channel.topic not in known:
            continue
        lost = _lost(place or Place(0), span)
        if lost:
            raise PositionLost(_gone(channel, place or Place(0), lost, cluster))
        starts[channel] = place.offset if place else 0
    ends = _within_a_window({channel: (start, spans[channel].end) for channel, start in starts.items()})
    limit = {channel: Place(end, spans[channel].topic_id) for channel, end in ends.items()}
    return News(any(ends[channel] > start for channel, start in starts.items()), position_of(limit))


def ranges_of(lo: Position, limit: Position) -> Iterator[Range]:
    places = places_of(lo)
    for channel, place in sorted(places_of(limit).items()):
        at = places[channel].offset if channel in places else 0
        while at < place.offset:
            stop = min(at + SHARE_MESSAGES, place.offset)
            yield Range(channel.topic, channel.partition, at, stop)
            at = stop


def in_shares(ranges: Sequence[Range]) -> list[list[Range]]:
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


def tells_all_behind(position: Position, spans: Mapping[Channel, Span], topics: Collection[str]) -> bool:
    """None of these topics has been read, and each serves its first message still."""
    places = places_of(position)
    untouched = all(places[channel].offset == 0 for channel in places if channel.topic in topics)
    served = [span.begin == 0 for channel, span in spans.items() if channel.topic in topics]
    return untouched and bool(served) and all(served)


def _lost(place: Place, span: Span) -> str:
    if place.topic_id and span.topic_id and place.topic_id != span.topic_id:
        return "the topic was deleted and made again"
    if place.offset < span.begin:
        return f"offsets {place.offset} to {span.begin - 1} are gone"
    if place.offset > span.end:
        return f"the partition ends at offset {span.end}"
    return ""


def _within_a_window(lags: Mapping[Channel, tuple[int, int]]) -> dict[Channel, int]:
    """Of a long backlog, from each partition its share."""
    behind = sum(end - start for start, end in lags.values())
    if behind <= WINDOW_MESSAGES:
        return {channel: end for channel, (_, end) in lags.items()}
    return {channel: start + -(-(end - start) * WINDOW_MESSAGES // behind) for channel, (start, end) in lags.items()}


def _channel(name: str) -> Channel:
    topic, _, partition = name.rpartition("/")
    return Channel(topic, int(partition))


def _place(text: str) -> Place:
    offset, _, topic_id = text.partition(" ")
    return Place(int(offset), topic_id)


def _gone(channel: Channel, place: Place, lost: str, cluster: str) -> Problem:
    return Problem(
        "SRC080",
        f"{channel.topic} does not serve our place in partition {channel.partition} any more",
        where=f"{cluster}, partition {channel.partition} of {channel.topic}",
        found=lost,
        allowed=f"offset {place.offset}",
        do="let the source tell all rows anew into new topics, name them in the YAML, and `airflow cdc resync`; "
        "keep messages longer than the replicator may stand still",
        data="the tables stand before what is gone; nothing was stepped over",
    )
