"""What the Pub/Sub API hands out."""

from __future__ import annotations

from typing import NamedTuple


class ChannelEvent(NamedTuple):
    replay_id: bytes
    schema_id: str
    payload: bytes


class Delivery(NamedTuple):
    """Events in stream order. Without events it is a sign of life: nothing more is to be had now. ``latest`` is then a
    place as far as the server has looked at ``at_s`` (since 1970), maybe beyond our last event; empty where it was our
    own patience that ended."""

    events: tuple[ChannelEvent, ...]
    latest: bytes = b""
    at_s: int = 0
