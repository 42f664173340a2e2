"""The messages after a position in topics, and those that are lost. Pure.

Lost messages affect the tables of their topic only, so the position of the whole stream is not lost. The window skips
them, and every table that they may belong to gets a hole.
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
    is_created_again,
    position_of,
    topic_offsets,
)
from airflow_cdc_provider.core.log.positions import Position

WINDOW_MESSAGES = 2_000_000
ADDED = (
    "it was added, and only offsets order the changes of this topic, so those of a key that moved to it count as older "
    "ones: let the connector write all tables into new topics"
)
NO_TOPICS: Mapping[str, Collection[str]] = {}


def read_status(
    position: Position,
    spans: Mapping[Channel, Span],
    missing: Collection[str],
    former: Mapping[str, Collection[str]] = NO_TOPICS,
    by_offset: Collection[str] = (),
) -> SourceStatus:
    """``spans``: the partitions of the topics of our tables. ``missing``: topics that do not exist any more.
    ``former``: topic → the topics that its table had under former names, which are read first. Omits a topic that was
    never read and has lost its first messages, unless a former one was read: its tables cannot be copied.
    ``by_offset``: topics whose changes only their offsets order. In a new partition these begin at 0, also for keys
    that were in another one."""
    read = topic_offsets(position)
    known_topics = {channel.topic for channel in read}
    lost: dict[Channel, str] = {}
    backlogs: dict[Channel, tuple[int, int]] = {}
    limit: dict[Channel, TopicOffset] = {}
    for channel, offset in read.items():
        if channel.topic in missing and offset.offset:
            lost[channel] = f"the topic {channel.topic} does not exist any more"
            limit[channel] = TopicOffset(0)
    for channel, span in spans.items():
        offset = read.get(channel, TopicOffset(0))
        is_read = not known_topics.isdisjoint({channel.topic, *former.get(channel.topic, ())})
        if channel not in read and not is_read and span.begin > 0:
            continue
        loss = _loss(offset, span)
        if channel not in read and channel.topic in known_topics and channel.topic in by_offset:
            loss = ADDED
        if loss:
            lost[channel] = f"partition {channel.partition} of {channel.topic}: {loss}"
            limit[channel] = TopicOffset(span.begin, span.topic_id)
        else:
            backlogs[channel] = (offset.offset, span.end)
    for channel, end in _window_ends(backlogs, former).items():
        limit[channel] = TopicOffset(end, spans[channel].topic_id)
    lost_entry = {LOST: json.dumps({str(channel): what for channel, what in lost.items()})} if lost else {}
    has_changes = bool(lost) or any(end > start for start, end in backlogs.values())
    return SourceStatus(has_changes, {**position_of(limit), **lost_entry})


def _loss(read: TopicOffset, span: Span) -> str:
    """Description of the lost messages, empty if there are none."""
    if is_created_again(read.topic_id, span.topic_id):
        return "the topic was deleted and created again"
    if read.offset < span.begin:
        return f"offsets {read.offset} to {span.begin - 1} were removed"
    if read.offset > span.end:
        return f"it ends at offset {span.end}, before offset {read.offset}, which was read already"
    return ""


def _window_ends(
    backlogs: Mapping[Channel, tuple[int, int]], former: Mapping[str, Collection[str]]
) -> dict[Channel, int]:
    """Divides the maximum size of a window among the partitions in proportion to their backlogs."""
    total = sum(end - start for start, end in backlogs.values())
    if total <= WINDOW_MESSAGES:
        return {channel: end for channel, (_, end) in backlogs.items()}
    unread = {channel.topic for channel, (start, end) in backlogs.items() if end > start}
    waiting = {topic for topic, names in former.items() if not unread.isdisjoint(names)}
    sizes = {channel: 0 if channel.topic in waiting else end - start for channel, (start, end) in backlogs.items()}
    total = max(sum(sizes.values()), WINDOW_MESSAGES)
    return {channel: start + -(-sizes[channel] * WINDOW_MESSAGES // total) for channel, (start, _) in backlogs.items()}
