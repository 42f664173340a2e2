"""Full snapshots that a feed's connector writes to its topics, and the detection of repeated ones. Pure.

A connector that lost its offsets writes its tables to their topics again. Rows deleted meanwhile have no event, so the
content of the table is the new snapshot and the changes after it.

A backfill of Datastream is a snapshot of one table, whose rows arrive in any order, also behind those of a later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

ONE_BACKFILL_MS = 600_000
"""Times with smaller distances belong to one backfill."""
CHANGES = ""
"""The ``place`` of the entry for the first change in a topic, which belongs to no snapshot."""


@dataclass(frozen=True)
class SourceSnapshot:
    """The rows of one full snapshot in one topic. ``source``: the connector's logical name. ``topic``: for files, the
    table. ``place``: the connector's position in its source, one per snapshot. ``at_ms``: time of the first message.
    ``ended``: the last row was read. ``whole``: of all tables, and not requested by an operator. ``backfill``: of one
    table, by Datastream, which began it at ``at_ms``."""

    source: str
    topic: str
    place: str
    at_ms: int
    ended: bool = False
    whole: bool = False
    backfill: bool = False

    @property
    def is_changes(self) -> bool:
        return self.place == CHANGES


def merge_snapshots(snapshots: Iterable[SourceSnapshot]) -> tuple[SourceSnapshot, ...]:
    """One entry per topic and place."""
    merged: dict[tuple[str, str], SourceSnapshot] = {}
    for snapshot in snapshots:
        key = (snapshot.topic, snapshot.place)
        if (other := merged.get(key)) is not None:
            first, ended = min(snapshot.at_ms, other.at_ms), snapshot.ended or other.ended
            snapshot = replace(snapshot, at_ms=first, ended=ended)
        merged[key] = snapshot
    return tuple(sorted(merged.values(), key=lambda entry: (entry.topic, entry.at_ms, entry.place)))


def find_restarts(known: Sequence[SourceSnapshot], seen: Sequence[SourceSnapshot]) -> tuple[SourceSnapshot, ...]:
    """Per connector, the earliest snapshot in ``seen`` whose topic had other content before. It starts at ``at_ms``, in
    all topics of its connector. ``known``: the entries of earlier windows. Of a backfill: the one beside another one of
    its table, whichever arrives first."""
    known_entries = {(entry.topic, entry.place) for entry in known}
    everything = merge_snapshots([*known, *seen])
    restarts = [
        entry
        for entry in merge_snapshots(seen)
        if not entry.is_changes
        and (entry.topic, entry.place) not in known_entries
        and (
            _is_another_backfill(entry, known, everything)
            if entry.backfill
            else any(other.topic == entry.topic and other.at_ms < entry.at_ms for other in everything)
        )
    ]
    latest_first = sorted(restarts, key=lambda entry: entry.at_ms, reverse=True)
    return tuple({entry.source: entry for entry in latest_first}.values())


def _is_another_backfill(
    entry: SourceSnapshot, known: Sequence[SourceSnapshot], everything: Sequence[SourceSnapshot]
) -> bool:
    """Whether its table has a row of another backfill, and none of this one in an earlier window."""
    backfills = _backfills([other for other in everything if other.backfill and other.topic == entry.topic])
    own = next(backfill for backfill in backfills if entry in backfill)
    return len(backfills) > 1 and not any(other in own for other in known)


def _backfills(entries: Sequence[SourceSnapshot]) -> list[list[SourceSnapshot]]:
    """The entries of each. ``entries``: by time."""
    backfills = list[list[SourceSnapshot]]()
    for entry in entries:
        if backfills and entry.at_ms - backfills[-1][-1].at_ms <= ONE_BACKFILL_MS:
            backfills[-1].append(entry)
        else:
            backfills.append([entry])
    return backfills


def covers_all_tables(restart: SourceSnapshot, snapshots: Sequence[SourceSnapshot]) -> bool:
    """Whether tables whose topics have no row of this snapshot are empty. Before its first change, a connector of
    PostgreSQL does not distinguish its own snapshot from one that an operator requested."""
    streamed = any(
        entry.is_changes and entry.source == restart.source and entry.at_ms < restart.at_ms for entry in snapshots
    )
    return restart.whole and (streamed or follows_interrupted_snapshot(restart, snapshots))


def follows_interrupted_snapshot(restart: SourceSnapshot, snapshots: Iterable[SourceSnapshot]) -> bool:
    """Whether the connector had neither finished a snapshot nor streamed a change before this one: its first snapshot
    was interrupted."""
    others = [entry for entry in snapshots if entry.source == restart.source and entry.place != restart.place]
    return not any((entry.ended or entry.is_changes) and entry.at_ms <= restart.at_ms for entry in others)
