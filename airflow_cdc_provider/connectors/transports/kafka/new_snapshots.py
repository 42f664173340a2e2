"""Ends a window where the topics of a connector begin a new snapshot. Pure.

Whatever the connector wrote before is older than the first row of the new snapshot, in any partition. So the time of
that row separates all topics of the connector, also those of tables that are empty now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from airflow_cdc_provider.connectors.transports.kafka.positions import (
    Channel,
    Span,
    TopicOffset,
    lost_channels,
    position_of,
    topic_offsets,
)
from airflow_cdc_provider.core.log.positions import Position


class TopicCut(NamedTuple):
    """``topics``: those that were not read beyond the start of the snapshot."""

    limit: dict[str, str]
    topics: frozenset[str]


def cut_before(
    lo: Position, limit: Position, starts: Mapping[Channel, int], spans: Mapping[Channel, Span], done: Collection[str]
) -> TopicCut:
    """``starts``: the first offset at or after the start of the new snapshot, in each partition of the connector.
    ``done``: topics for which an earlier window ended before this snapshot. A partition with a lower limit is also read
    up to its start, so that the next window begins with the new snapshot in every partition."""
    lo_offsets, lost = topic_offsets(lo), lost_channels(limit)
    ends = dict(topic_offsets(limit))
    topics = set()
    for channel, start in starts.items():
        read = lo_offsets.get(channel, TopicOffset(0)).offset
        is_read = channel in ends or channel in lo_offsets
        if not is_read or channel.topic in done or str(channel) in lost or read > start:
            continue
        ends[channel] = TopicOffset(start, spans[channel].topic_id)
        topics.add(channel.topic)
    others = {name: text for name, text in limit.items() if "/" not in name}
    return TopicCut({**position_of(ends), **others}, frozenset(topics))
