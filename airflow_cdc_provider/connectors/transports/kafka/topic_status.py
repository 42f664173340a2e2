"""What lies behind a place in topics, and what of it is gone. Pure.

What is gone touches the tables of its topic and no other. So it is no lost position of the whole stream: the window
steps over it, says so, and every table that it may be of has a hole there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.connectors.transports.kafka.positions import (
    LOST,
    Channel,
    Span,
    TopicOffset,
    position_of,
    topic_offsets,
)
from airflow_cdc_provider.core.log.positions import Position

WINDOW_MESSAGES = 2_000_000


def read_status(position: Position, spans: Mapping[Channel, Span], vanished: Collection[str]) -> SourceStatus:
    """``spans``: the partitions of the topics that our tables are in. ``vanished``: topics that are there no more. A
    topic that was never read, and whose first messages are gone, is left out: its tables cannot be copied."""
    places = topic_offsets(position)
    known = {channel.topic for channel in places}
    lost: dict[Channel, str] = {}
    lags: dict[Channel, tuple[int, int]] = {}
    limit: dict[Channel, TopicOffset] = {}
    for channel, place in places.items():
        if channel.topic in vanished and place.offset:
            lost[channel] = f"the topic {channel.topic} is there no more"
            limit[channel] = TopicOffset(0)
    for channel, span in spans.items():
        place = places.get(channel, TopicOffset(0))
        if channel not in places and channel.topic not in known and span.begin > 0:
            continue
        gone = _gone(place, span)
        if gone:
            lost[channel] = f"partition {channel.partition} of {channel.topic}: {gone}"
            limit[channel] = TopicOffset(span.begin, span.topic_id)
        else:
            lags[channel] = (place.offset, span.end)
    for channel, end in _within_a_window(lags).items():
        limit[channel] = TopicOffset(end, spans[channel].topic_id)
    told = {LOST: json.dumps({str(channel): what for channel, what in lost.items()})} if lost else {}
    anything = bool(lost) or any(end > start for start, end in lags.values())
    return SourceStatus(anything, {**position_of(limit), **told})


def _gone(place: TopicOffset, span: Span) -> str:
    if place.topic_id and span.topic_id and place.topic_id != span.topic_id:
        return "the topic was deleted and made again"
    if place.offset < span.begin:
        return f"offsets {place.offset} to {span.begin - 1} are gone"
    if place.offset > span.end:
        return f"it ends at offset {span.end}, before the place that was read to, {place.offset}"
    return ""


def _within_a_window(lags: Mapping[Channel, tuple[int, int]]) -> dict[Channel, int]:
    """Of a long backlog, from each partition its share."""
    behind = sum(end - start for start, end in lags.values())
    if behind <= WINDOW_MESSAGES:
        return {channel: end for channel, (_, end) in lags.items()}
    return {channel: start + -(-(end - start) * WINDOW_MESSAGES // behind) for channel, (start, end) in lags.items()}
