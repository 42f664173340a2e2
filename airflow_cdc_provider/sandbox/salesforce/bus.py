"""The event bus: what was published, in order, for as long as it is retained.

Replay ids are 10 bytes: a number that grows by random steps, and two zero bytes. Each channel counts from a number of
its own, so an id means nothing on another channel.
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
    """``produced`` is the event as it goes over the wire, without its replay id. A mark of the tip has no entity."""

    number: int
    at_ms: int
    entity: str
    produced: bytes
    event: Event | None


class Bus:
    """``changed`` is notified on every publication. ``allocation``: deliveries per rolling 24 hours."""

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
        """The org moved: what was retained is gone, and no replay id of before is known any more."""
        with self.changed:
            self._salt = self._random.getrandbits(32)
            self._entries: list[Entry] = []
            self._numbers: list[int] = []
            self._first = 0
            self._next = self._random.randrange(10**6, 10**7)
            self._mark()
            self.changed.notify_all()

    def publish(self, events: Iterable[Event]) -> None:
        with self.changed:
            at = self.clock.now_ms()
            for event in events:
                self._append(at, event.entity, produced(str(uuid.uuid4()), event.schema_id, event.payload), event)
                self.published += 1
            self._forget()
            self.changed.notify_all()

    def repeat(self, count: int) -> None:
        """Publish the last events again, each with a new replay id: the bus delivers at least once."""
        with self.changed:
            last = [entry.event for entry in self._entries if entry.event is not None][-count:]
            self.publish(last)

    def tip(self) -> int:
        """The index behind everything published."""
        with self.changed:
            return self._first + len(self._entries)

    def oldest(self) -> int:
        with self.changed:
            self._forget()
            return self._first

    def index_after(self, channel: str, replay_id: bytes) -> int | None:
        """Where to go on after a replay id; None if the bus does not know it: aged out, moved, or never its own."""
        with self.changed:
            self._forget()
            if len(replay_id) != 10 or replay_id[8:] != b"\0\0":
                return None
            number = struct.unpack(">Q", replay_id[:8])[0] - self._base(channel)
            place = bisect_left(self._numbers, number)
            known = place < len(self._numbers) and self._numbers[place] == number
            return self._first + place + 1 if known else None

    def take(
        self, index: int, most: int, entities: frozenset[str], most_bytes: int | None = None
    ) -> tuple[list[Entry], int]:
        """Up to ``most`` events of these entities from ``index`` on, and the index behind the last one looked at.

        Also no more than fit ``most_bytes``, but always one.
        """
        with self.changed:
            found: list[Entry] = []
            size = 0
            place = max(0, index - self._first)
            while place < len(self._entries) and len(found) < most:
                entry = self._entries[place]
                if entry.entity in entities:
                    size += len(entry.produced)
                    if found and most_bytes is not None and size > most_bytes:
                        break
                    found.append(entry)
                place += 1
            return found, self._first + place

    def position(self) -> Entry:
        """The tip as an entry that a subscriber may store: never one that is about to age out."""
        with self.changed:
            self._forget()
            last = self._entries[-1] if self._entries else None
            if last is None or last.at_ms < self.clock.now_ms() - 60_000:
                self._mark()
            return self._entries[-1]

    def replay_id(self, channel: str, entry: Entry) -> bytes:
        return struct.pack(">QH", entry.number + self._base(channel), 0)

    def count(self, deliveries: int) -> None:
        """They count for 24 hours, whoever got them."""
        with self.changed:
            self._deliveries.append((self.clock.now_ms(), deliveries))
            self._delivered += deliveries

    @property
    def allowed(self) -> int:
        """How many events may still be delivered today."""
        return max(0, self.allocation - self.delivered)

    @property
    def delivered(self) -> int:
        """In the last 24 hours, to all subscribers together."""
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

    def _mark(self) -> None:
        self._append(self.clock.now_ms(), "", b"", None)

    def _forget(self) -> None:
        """Drop what is older than the retention."""
        horizon = self.clock.now_ms() - self.retention_s * 1000
        if not self._entries or self._entries[0].at_ms >= horizon:
            return
        old = next((n for n, entry in enumerate(self._entries) if entry.at_ms >= horizon), len(self._entries))
        del self._entries[:old], self._numbers[:old]
        self._first += old
