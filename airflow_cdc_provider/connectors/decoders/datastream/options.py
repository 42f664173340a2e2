"""The keys of a source that reads Datastream events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatastreamOptions:
    """There are none."""
