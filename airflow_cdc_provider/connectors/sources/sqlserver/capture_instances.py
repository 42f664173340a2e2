"""Which capture instance delivers which part of a window. Pure.

A table has at most two. During a schema change the older one delivers the commits before the ``start`` of the newer
one, and the newer one all others. Cleanup raises ``start`` before it deletes rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CaptureInstance


@dataclass(frozen=True)
class Segment:
    """Commits in ``(after, upto]`` are read from ``instance``."""

    instance: CaptureInstance
    after: int
    upto: int


@dataclass(frozen=True)
class Coverage:
    """The segments of a window, in order. ``lost``: changes before this commit LSN are in no change table; 0 if none
    are missing."""

    segments: tuple[Segment, ...]
    lost: int = 0


def cover(instances: Sequence[CaptureInstance], after: int, upto: int) -> Coverage:
    """``instances``: oldest first. Without one, the whole window is lost."""
    started = [(instance.start, instance) for instance in instances if instance.start is not None]
    reach = [entry for entry in started if entry[0] <= after + 1]
    later = [entry for entry in started if after + 1 < entry[0] <= upto]
    lost = 0
    if not reach:
        lost = later[0][0] if later else upto + 1
    parts = [*reach[-1:], *later]
    ends = [*(start - 1 for start, _ in parts[1:]), upto][: len(parts)]
    segments = tuple(
        Segment(instance, max(after, start - 1), end)
        for (start, instance), end in zip(parts, ends, strict=True)
        if end > max(after, start - 1)
    )
    return Coverage(segments, lost)


def within(segments: Sequence[Segment], after: int, upto: int) -> list[Segment]:
    """The parts of the segments in ``(after, upto]``."""
    parts = [Segment(one.instance, max(one.after, after), min(one.upto, upto)) for one in segments]
    return [part for part in parts if part.upto > part.after]


def switches(segments: Sequence[Segment]) -> list[int]:
    """The last commit LSN before each change of the instance."""
    return [segment.upto for segment in segments[:-1]]
