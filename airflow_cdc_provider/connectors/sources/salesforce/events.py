"""Events of the Pub/Sub API."""

from __future__ import annotations

from typing import NamedTuple


class ChannelEvent(NamedTuple):
    replay_id: bytes
    schema_id: str
    payload: bytes


class Delivery(NamedTuple):
    """Events in stream order. A delivery without events is a keepalive: there are no more events now. Then ``latest``
    is the replay id up to which the server had searched at ``at_s`` (since 1970, by this host's clock), which may be
    after the last event; empty if the client timed out instead."""

    events: tuple[ChannelEvent, ...]
    latest: bytes = b""
    at_s: int = 0

    def by_clock(self, ahead_s: int) -> Delivery:
        """With the time of a clock that is so far ahead of this host's."""
        return self._replace(at_s=self.at_s + ahead_s) if self.latest else self
