"""Deletes that compaction has removed before they were read, found by the tombstones that they leave. Pure.

A connector writes the delete of a row and its tombstone one after the other, with one key. Compaction removes the
delete first, since it keeps the last message of a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.positions import Channel, OffsetRange


@dataclass
class LostDeletes:
    """Of these ranges. ``topics``: those in which a tombstone was read without its delete, with the first one."""

    ranges: Sequence[OffsetRange]
    topics: dict[str, str] = field(default_factory=dict)

    def watch(self, messages: Iterable[Message]) -> Iterator[Message]:
        """All of them, as they are."""
        starts = {str(Channel(one.topic, one.partition)): one.start for one in self.ranges}
        before: dict[str, Message] = {}
        for message in messages:
            if message.value is None and _is_alone(message, before.get(message.channel), starts):
                found = f"{message.channel} has the tombstone at offset {message.offset}, and not the delete before it"
                self.topics.setdefault(message.topic, f"{found}: compaction removed messages before they were read")
            before[message.channel] = message
            yield message


def _is_alone(tombstone: Message, before: Message | None, starts: Mapping[str, int]) -> bool:
    """``before``: the message that was read before it. A transaction may end between both, whose marker has an offset.
    Of what is removed before the first read of a partition, no row was read."""
    start = starts.get(tombstone.channel, 0)
    if before is None:
        return 0 < start < tombstone.offset
    return start > 0 and before.offset < tombstone.offset - 1 and before.key != tombstone.key
