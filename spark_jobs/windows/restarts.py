"""A window in which the connector of a feed starts to copy its tables again: the window ends there, where the feed can
be split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.source_features import Restart, RestartsSnapshots
from airflow_cdc_provider.core.log.change_log import EXPIRED, RELOAD, RESTART, Hole, Manifest
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import (
    SourceSnapshot,
    covers_all_tables,
    find_restarts,
    follows_interrupted_snapshot,
    merge_snapshots,
)

RESTART_SUFFIX = "-restart"
"""Suffix of the attempt that writes the shorter window: its files differ."""


@dataclass(frozen=True)
class RestartedWindow:
    """``seen``: the snapshots in the window when it was read beyond its new end. ``restarted``: topics whose content
    starts again there; for the other ``tables`` of the connector this is unknown. ``interrupted``: the connector's
    first snapshot had not ended, so no decision is needed. ``separable``: see ``Restart``."""

    began: SourceSnapshot
    seen: Sequence[SourceSnapshot]
    restarted: frozenset[str]
    tables: Mapping[str, frozenset[str]]
    interrupted: bool
    separable: bool

    @classmethod
    def of(
        cls,
        began: SourceSnapshot,
        restart: Restart,
        known: Sequence[SourceSnapshot],
        seen: Sequence[SourceSnapshot],
        copies: Mapping[str, str],
    ) -> RestartedWindow:
        """``copies``: see ``shorten_at_restarts``."""
        snapshots = [*known, *seen]
        with_rows = {snapshot.topic for snapshot in seen if snapshot.place == began.place}
        topics = restart.tables.keys() - {""}
        restarted = frozenset(topics if covers_all_tables(began, snapshots) else topics & with_rows)
        return cls(
            began,
            seen,
            restarted,
            {topic: frozenset(copies.get(name, name) for name in names) for topic, names in restart.tables.items()},
            follows_interrupted_snapshot(began, snapshots),
            restart.separable,
        )

    def mark(self, manifest: Manifest) -> Manifest:
        """The manifest with a hole for each table, and with the snapshot in each topic: the next window starts with
        it."""
        holes = [
            self._hole(table, topic, manifest)
            for topic, tables in sorted(self.tables.items())
            for table in sorted(tables & manifest.tables.keys())
        ]
        marks = [replace(self.began, topic=topic, ended=False) for topic in self.restarted]
        return replace(
            manifest, holes=(*manifest.holes, *holes), snapshots=merge_snapshots([*manifest.snapshots, *marks])
        )

    def _hole(self, table: str, topic: str, manifest: Manifest) -> Hole:
        into = "topics that contain" if self.separable else "a folder that contains"
        what = f"connector {self.began.source} copied its tables again into {into} earlier rows or changes"
        if self.began.backfill:
            kind, what = EXPIRED, f"Datastream backfilled the table again into {into} rows of another backfill"
            why = (
                "it may repair changes that were lost, but changes count as newer than all backfilled rows, and rows "
                "that were deleted meanwhile have no event. Start a new stream that writes into a new folder, and name "
                "that folder in the YAML"
            )
        elif not self.separable:
            kind = EXPIRED
            why = (
                "rows that were deleted meanwhile have no event. Configure it to write into a new folder, and name "
                "that folder in the YAML"
            )
        elif not topic:
            kind = EXPIRED
            why = "the first messages of no topic show which of them contains this table: use new topics"
        elif topic not in self.restarted:
            kind = EXPIRED
            why = "it wrote no row of this table, which may be empty now, or an operator requested some tables only"
        elif self.interrupted:
            kind, why = RELOAD, "its first snapshot was interrupted"
        else:
            kind = RESTART
            why = (
                "it lost its offsets, or `snapshot.mode` requires it; rows that were deleted meanwhile have no event. "
                "A resync reads the table from the new snapshot on, which must contain all of its rows"
            )
        return Hole(kind, table, "", position=manifest.hi, detail=f"{what}: {why}")


def shorten_at_restarts(
    source: RestartsSnapshots,
    lo: Position,
    limit: Position,
    known: Sequence[SourceSnapshot],
    seen: Sequence[SourceSnapshot],
    found_before: Sequence[RestartedWindow],
    copies: Mapping[str, str],
    tables: Sequence[str],
) -> tuple[Position, tuple[RestartedWindow, ...]]:
    """Where the window must end, and what starts again there, one entry for each connector. ``seen``: the snapshots in
    the window when it was read up to ``limit``. ``found_before``: the restarts found when the window was longer.
    ``copies``: name of a renamed table → name of its copy; its former name → empty. ``tables``: those of the window, as
    the source names them."""
    restarts = {window.began.source: window for window in found_before}
    for began in find_restarts(known, seen):
        later = restarts.get(began.source)
        if later is not None and later.began.at_ms <= began.at_ms:
            continue
        restart = source.restart(lo, limit, began, [*known, *seen], known, tables)
        if restart.tables:
            limit = restart.limit
            all_seen = [*seen, *(later.seen if later else ())]
            restarts[began.source] = RestartedWindow.of(began, restart, known, all_seen, copies)
    return limit, tuple(restarts.values())
