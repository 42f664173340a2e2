"""The event bus: the published events, in order, until their retention ends.

A replay id has 10 bytes: a number that grows by random steps, and two zero bytes. Each channel starts at a different
number, so an id is invalid on another channel.
"""

from __future__ import annotations

import random
import struct
import threading
import uuid
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_cdc_provider.sandbox.salesforce.change_events import Event
from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.wire import produced

RETENTION_S = 72 * 3600
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Entry:
    """``produced`` is the event in bytes, without its replay id. A marker of the tip has no entity and no event."""

    number: int
    at_ms: int
    entity: str
    produced: bytes
    event: Event | None


class Bus:
    """``changed`` is notified on every publication. ``allocation``: deliveries per 24 hours."""

    def __init__(self, clock: Clock, seed: int = 1, allocation: int = 100_000_000) -> None:
        self.changed = threading.Condition()
        self.retention_s = RETENTION_S
        self.allocation = allocation
        self.published = 0
        self.clock = clock
        self._random = random.Random(seed)
        self._deliveries: deque[tuple[int, int]] = deque()
        self._delivered = 0
        self.reset()

    def reset(self) -> None:
        """Delete all events and invalidate all replay ids, as when the org moves to another instance."""
        with self.changed:
            self._salt = self._random.getrandbits(32)
            self._entries: list[Entry] = []
            self._numbers: list[int] = []
            self._first = 0
            self._next = self._random.randrange(10**6, 10**7)
            self._append_marker()
            self.changed.notify_all()

    def publish(self, events: Iterable[Event]) -> None:
        with self.changed:
            now = self.clock.now_ms()
            for event in events:
                self._append(now, event.entity, produced(str(uuid.uuid4()), event.schema_id, event.payload), event)
                self.published += 1
            self._expire()
            self.changed.notify_all()

    def repeat(self, count: int) -> None:
        """Publish the last events again, each with a new replay id: the bus delivers at least once."""
        with self.changed:
            last = [entry.event for entry in self._entries if entry.event is not None][-count:]
            self.publish(last)

    def tip(self) -> int:
        """The index after the last entry."""
        with self.changed:
            return self._first + len(self._entries)

    def oldest(self) -> int:
        with self.changed:
            self._expire()
            return self._first

    def index_after(self, channel: str, replay_id: bytes) -> int | None:
        """The index after a replay id. None if the id has expired, or was never valid on this channel."""
        with self.changed:
            self._expire()
            if len(replay_id) != 10 or replay_id[8:] != b"\0\0":
                return None
            number = struct.unpack(">Q", replay_id[:8])[0] - self._base(channel)
            index = bisect_left(self._numbers, number)
            known = index < len(self._numbers) and self._numbers[index] == number
            return self._first + index + 1 if known else None

    def take(
        self, index: int, max_events: int, entities: frozenset[str], max_bytes: int | None = None
    ) -> tuple[list[Entry], int]:
        """Events of these entities from ``index`` on, and the index to continue at.

        At most ``max_events``, and at most ``max_bytes`` unless the first event is larger.
        """
        with self.changed:
            taken: list[Entry] = []
            size = 0
            at = max(0, index - self._first)
            while at < len(self._entries) and len(taken) < max_events:
                entry = self._entries[at]
                if entry.entity in entities:
                    size += len(entry.produced)
                    if taken and max_bytes is not None and size > max_bytes:
                        break
                    taken.append(entry)
                at += 1
            return taken, self._first + at

    def latest(self) -> Entry:
        """An entry at the tip whose replay id a subscriber may store. It is at most a minute old."""
        with self.changed:
            self._expire()
            last = self._entries[-1] if self._entries else None
            if last is None or last.at_ms < self.clock.now_ms() - 60_000:
                self._append_marker()
            return self._entries[-1]

    def replay_id(self, channel: str, entry: Entry) -> bytes:
        return struct.pack(">QH", entry.number + self._base(channel), 0)

    def count(self, deliveries: int) -> None:
        """Add deliveries to the usage of the allocation."""
        with self.changed:
            self._deliveries.append((self.clock.now_ms(), deliveries))
            self._delivered += deliveries

    @property
    def allowed(self) -> int:
        """The remaining deliveries of the allocation."""
        return max(0, self.allocation - self.delivered)

    @property
    def delivered(self) -> int:
        """The deliveries of the last 24 hours to all subscribers."""
        with self.changed:
            while self._deliveries and self._deliveries[0][0] <= self.clock.now_ms() - DAY_MS:
                self._delivered -= self._deliveries.popleft()[1]
            return self._delivered

    def _base(self, channel: str) -> int:
        return zlib.crc32(channel.encode()) ^ self._salt

    def _append(self, at_ms: int, entity: str, body: bytes, event: Event | None) -> None:
        self._next += self._random.randrange(1, 50)
        self._entries.append(Entry(self._next, at_ms, entity, body, event))
        self._numbers.append(self._next)

    def _append_marker(self) -> None:
        self._append(self.clock.now_ms(), "", b"", None)

    def _expire(self) -> None:
        """Delete entries that are older than the retention."""
        oldest_ms = self.clock.now_ms() - self.retention_s * 1000
        if not self._entries or self._entries[0].at_ms >= oldest_ms:
            return
        expired = next((n for n, entry in enumerate(self._entries) if entry.at_ms >= oldest_ms), len(self._entries))
        del self._entries[:expired], self._numbers[:expired]
        self._first += expired
