"""A window in which a feed's connector begins to copy its tables anew: it ends there, where the feed can be parted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.source import Restart, RestartsSnapshots
from airflow_cdc_provider.core.log.change_log import EXPIRED, RELOAD, RESTART, Hole, Manifest
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.snapshots import (
    SourceSnapshot,
    covers_all_tables,
    find_restarts,
    follows_interrupted_snapshot,
    merge_snapshots,
)

RESTARTED = "-restart"
"""What the attempt that lands such a window bears behind its name: its files are others."""


@dataclass(frozen=True)
class RestartedWindow:
    """``seen``: the snapshots that were met when the window was read beyond its end. ``told``: topics that begin anew
    there; of the other ``topics`` of the connector it is not known. ``interrupted``: the connector's first snapshot had
    not ended, so nobody needs to decide. ``separable``: see ``Restart``."""

    began: SourceSnapshot
    seen: Sequence[SourceSnapshot]
    told: frozenset[str]
    tables: Mapping[str, frozenset[str]]
    interrupted: bool
    separable: bool

    @classmethod
    def of(
        cls, began: SourceSnapshot, restart: Restart, known: Sequence[SourceSnapshot], seen: Sequence[SourceSnapshot]
    ) -> RestartedWindow:
        everything = [*known, *seen]
        rows = {one.topic for one in seen if one.place == began.place}
        told = restart.tables.keys() if covers_all_tables(began, everything) else restart.tables.keys() & rows
        return cls(
            began,
            seen,
            frozenset(told),
            restart.tables,
            follows_interrupted_snapshot(began, everything),
            restart.parted,
        )

    def marked(self, manifest: Manifest) -> Manifest:
        """With a hole for each table, and the snapshot in each topic: the next window begins with it."""
        holes = [
            self._hole(table, topic, manifest)
            for topic, tables in sorted(self.tables.items())
            for table in sorted(tables & manifest.tables.keys())
        ]
        marks = [replace(self.began, topic=topic, ended=False) for topic in self.told]
        return replace(
            manifest, holes=(*manifest.holes, *holes), snapshots=merge_snapshots([*manifest.snapshots, *marks])
        )

    def _hole(self, table: str, topic: str, manifest: Manifest) -> Hole:
        into = "topics that hold" if self.separable else "a folder that holds"
        what = f"connector {self.began.source} copied its tables anew into {into} earlier rows or changes"
        if not self.separable:
            kind = EXPIRED
            why = "rows that were deleted meanwhile have no event. Let it write into a new folder, and name that"
        elif topic not in self.told:
            kind = EXPIRED
            why = "it wrote no row of this table, which may be empty now, or an operator asked for some tables alone"
        elif self.interrupted:
            kind, why = RELOAD, "its first snapshot was interrupted"
        else:
            kind = RESTART
            why = (
                "it lost its offsets, or `snapshot.mode` asks for it; rows that were deleted meanwhile have no event. "
                "A resync takes the table from the new snapshot on, which has to hold all of its rows"
            )
        return Hole(kind, table, "", position=manifest.hi, detail=f"{what}: {why}")


def restarted(
    source: RestartsSnapshots,
    lo: Position,
    limit: Position,
    known: Sequence[SourceSnapshot],
    seen: Sequence[SourceSnapshot],
    before: Sequence[RestartedWindow],
) -> tuple[Position, tuple[RestartedWindow, ...]]:
    """Where the window has to end, and what begins anew there, one entry for each connector. ``seen``: what it held
    when it was read up to ``limit``. ``before``: what was met when it was read farther."""
    met = {one.began.source: one for one in before}
    for began in find_restarts(known, seen):
        later = met.get(began.source)
        if later is not None and later.began.at_ms <= began.at_ms:
            continue
        restart = source.restart(lo, limit, began, [*known, *seen], known)
        if restart.tables:
            limit = restart.limit
            met[began.source] = RestartedWindow.of(began, restart, known, [*seen, *(later.seen if later else ())])
    return limit, tuple(met.values())
