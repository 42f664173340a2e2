"""A window that ends where a feed's connector begins to copy its tables anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.source import Restart
from airflow_cdc_provider.core.changelog import RELOAD, RESTART, Hole, Manifest
from airflow_cdc_provider.core.snapshots import Snapshot, joined, of_all_tables, unfinished

EXPIRED = "expired"
RESTARTED = "-restart"
"""What the attempt that lands such a window bears behind its name: its files are others."""


@dataclass(frozen=True)
class Restarted:
    """``seen``: the snapshots that were met when the window was read beyond its end. ``told``: topics that begin anew
    there; of the other ``topics`` of the connector it is not known. ``interrupted``: the connector's first snapshot had
    not ended, so nobody needs to decide."""

    began: Snapshot
    seen: list[Snapshot]
    told: frozenset[str]
    tables: Mapping[str, frozenset[str]]
    interrupted: bool

    @classmethod
    def of(cls, began: Snapshot, restart: Restart, known: Sequence[Snapshot], seen: list[Snapshot]) -> Restarted:
        everything = [*known, *seen]
        rows = {one.topic for one in seen if one.place == began.place}
        told = restart.tables.keys() if of_all_tables(began, everything) else restart.tables.keys() & rows
        return cls(began, seen, frozenset(told), restart.tables, unfinished(began, everything))

    def marked(self, manifest: Manifest) -> Manifest:
        """With a hole for each table, and the snapshot in each topic: the next window begins with it."""
        holes = [
            self._hole(table, topic, manifest)
            for topic, tables in sorted(self.tables.items())
            for table in sorted(tables & manifest.tables.keys())
        ]
        marks = [replace(self.began, topic=topic, ended=False) for topic in self.told]
        return replace(manifest, holes=(*manifest.holes, *holes), snapshots=joined([*manifest.snapshots, *marks]))

    def _hole(self, table: str, topic: str, manifest: Manifest) -> Hole:
        what = f"connector {self.began.source} copied its tables anew into topics that hold earlier rows or changes"
        if topic not in self.told:
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
