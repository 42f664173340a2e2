"""Events of the Pub/Sub API."""

from __future__ import annotations

from typing import NamedTuple


class ChannelEvent(NamedTuple):
    replay_id: bytes
    schema_id: str
    payload: bytes


class Delivery(NamedTuple):
    """Events in stream order. A delivery without events is a keepalive: there are no more events now. Then ``latest``
    is the replay id up to which the server had searched at ``at_s`` (since 1970), which may be after the last event;
    empty if the client timed out instead."""

    events: tuple[ChannelEvent, ...]
    latest: bytes = b""
    at_s: int = 0
