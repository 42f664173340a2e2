"""Full snapshots that a feed's connector has written into its topics, and which of them begins the topic anew. Pure.

A connector that lost its offsets copies its tables once more into the topics they are in already. What was deleted at
the source meanwhile has no event: the rows of the new snapshot, and what follows them, are the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

CHANGES = ""
"""The place of an entry for the first change in a topic, which is of no snapshot."""


@dataclass(frozen=True)
class SourceSnapshot:
    """Rows of one full snapshot in one topic. ``source``: the connector's logical name. ``topic``: in files, the table.
    ``place``: where the connector stood in its source; one snapshot has one. ``at_ms``: the time of the first message.
    ``ended``: the last row was met. ``whole``: it is of all tables of the connector, which no operator asked for."""

    source: str
    topic: str
    place: str
    at_ms: int
    ended: bool = False
    whole: bool = False

    @property
    def is_changes(self) -> bool:
        return self.place == CHANGES


def merge_snapshots(snapshots: Iterable[SourceSnapshot]) -> tuple[SourceSnapshot, ...]:
    """One entry for each topic and place."""
    found: dict[tuple[str, str], SourceSnapshot] = {}
    for one in snapshots:
        key = (one.topic, one.place)
        if (other := found.get(key)) is not None:
            one = replace(one, at_ms=min(one.at_ms, other.at_ms), ended=one.ended or other.ended)
        found[key] = one
    return tuple(sorted(found.values(), key=lambda one: (one.topic, one.at_ms, one.place)))


def find_restarts(known: Sequence[SourceSnapshot], seen: Sequence[SourceSnapshot]) -> tuple[SourceSnapshot, ...]:
    """Of each connector the earliest snapshot among ``seen`` whose topic held something else before: it starts at
    ``at_ms``, over all topics of its connector. ``known``: what earlier windows held."""
    entries = {(one.topic, one.place) for one in known}
    everything = merge_snapshots([*known, *seen])
    restarts = [
        one
        for one in merge_snapshots(seen)
        if not one.is_changes
        and (one.topic, one.place) not in entries
        and any(other.topic == one.topic and other.at_ms < one.at_ms for other in everything)
    ]
    latest_first = sorted(restarts, key=lambda one: one.at_ms, reverse=True)
    return tuple({one.source: one for one in latest_first}.values())


def covers_all_tables(restart: SourceSnapshot, snapshots: Sequence[SourceSnapshot]) -> bool:
    """Also topics without a row of it begin anew: their tables are empty. Before its first change a connector of
    PostgreSQL does not tell its own snapshot from an operator's."""
    streamed = any(one.is_changes and one.source == restart.source and one.at_ms < restart.at_ms for one in snapshots)
    return restart.whole and (streamed or follows_interrupted_snapshot(restart, snapshots))


def follows_interrupted_snapshot(restart: SourceSnapshot, snapshots: Iterable[SourceSnapshot]) -> bool:
    """The connector had neither ended a snapshot nor streamed a change when this one began: its first snapshot was
    interrupted."""
    before = [one for one in snapshots if one.source == restart.source and one.place != restart.place]
    return not any((one.ended or one.is_changes) and one.at_ms <= restart.at_ms for one in before)
