"""The keys of a source that reads Datastream's events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatastreamOptions:
    """None: the events tell everything."""
