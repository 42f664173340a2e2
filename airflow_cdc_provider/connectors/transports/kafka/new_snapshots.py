"""Where the topics of a connector begin anew, because it copied its tables once more. Pure.

What the connector wrote before it lost its offsets is older than the first row of the new snapshot, in whichever
partition that is. So one time parts all topics of the connector, also those of tables that are empty now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from airflow_cdc_provider.connectors.transports.kafka.positions import (
    Channel,
    Span,
    TopicOffset,
    lost_of,
    position_of,
    topic_offsets,
)
from airflow_cdc_provider.core.log.positions import Position


class TopicCut(NamedTuple):
    """``topics``: those that have not been read beyond the beginning of the snapshot."""

    limit: dict[str, str]
    topics: frozenset[str]


def cut_before(
    lo: Position, limit: Position, starts: Mapping[Channel, int], spans: Mapping[Channel, Span], told: Collection[str]
) -> TopicCut:
    """``starts``: the first offset of the new snapshot, or of what follows it, in each partition of the connector.
    ``told``: topics that an earlier window has ended before this snapshot. A partition that was to be read less far is
    read up to there: the next window begins with the new snapshot everywhere."""
    begun, gone = topic_offsets(lo), lost_of(limit)
    ends = dict(topic_offsets(limit))
    topics = set()
    for channel, start in starts.items():
        read = begun.get(channel, TopicOffset(0)).offset
        is_read = channel in ends or channel in begun
        if not is_read or channel.topic in told or str(channel) in gone or read > start:
            continue
        ends[channel] = TopicOffset(start, spans[channel].topic_id)
        topics.add(channel.topic)
    others = {name: text for name, text in limit.items() if "/" not in name}
    return TopicCut({**position_of(ends), **others}, frozenset(topics))
