"""Where the topics of a connector begin anew, because it copied its tables once more. Pure.

What the connector wrote before it lost its offsets is older than the first row of the new snapshot, in whichever
partition that is. So one time parts all topics of the connector, also those of tables that are empty now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from airflow_cdc_provider.connectors.kafka.positions import Channel, Place, Span, lost_of, places_of, position_of
from airflow_cdc_provider.core.positions import Position


class Cut(NamedTuple):
    """``topics``: those that have not been read beyond the beginning of the snapshot."""

    limit: dict[str, str]
    topics: frozenset[str]


def cut_before(
    lo: Position, limit: Position, starts: Mapping[Channel, int], spans: Mapping[Channel, Span], told: Collection[str]
) -> Cut:
    """``starts``: the first offset of the new snapshot, or of what follows it, in each partition of the connector.
    ``told``: topics that an earlier window has ended before this snapshot. A partition that was to be read less far is
    read up to there: the next window begins with the new snapshot everywhere."""
    begun, gone = places_of(lo), lost_of(limit)
    ends = dict(places_of(limit))
    topics = set()
    for channel, start in starts.items():
        read = begun.get(channel, Place(0)).offset
        is_read = channel in ends or channel in begun
        if not is_read or channel.topic in told or str(channel) in gone or read > start:
            continue
        ends[channel] = Place(start, spans[channel].topic_id)
        topics.add(channel.topic)
    others = {name: text for name, text in limit.items() if "/" not in name}
    return Cut({**position_of(ends), **others}, frozenset(topics))
