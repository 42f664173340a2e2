"""A window that ends where a feed's connector begins to copy its tables anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.source import Restart
from airflow_cdc_provider.core.changelog import RELOAD, RESTART, Hole, Manifest
from airflow_cdc_provider.core.snapshots import Snapshot, joined, unfinished

RESTARTED = "-restart"
"""What the attempt that lands such a window bears behind its name: its files are others."""


@dataclass(frozen=True)
class Restarted:
    """``interrupted``: the connector's first snapshot had not ended, so nobody needs to decide."""

    began: Snapshot
    topics: frozenset[str]
    tables: frozenset[str]
    interrupted: bool

    @classmethod
    def of(cls, began: Snapshot, restart: Restart, snapshots: Sequence[Snapshot]) -> Restarted:
        return cls(began, restart.topics, restart.tables, unfinished(began, snapshots))

    def marked(self, manifest: Manifest) -> Manifest:
        """With a hole for each table, and the snapshot in each topic: the next window begins with it."""
        holes = [self._hole(table, manifest) for table in sorted(self.tables & manifest.tables.keys())]
        told = [replace(self.began, topic=topic, ended=False) for topic in self.topics]
        return replace(manifest, holes=(*manifest.holes, *holes), snapshots=joined([*manifest.snapshots, *told]))

    def _hole(self, table: str, manifest: Manifest) -> Hole:
        kind, why = RESTART, "the connector lost its offsets"
        if self.interrupted:
            kind, why = RELOAD, "its first snapshot was interrupted"
        detail = (
            f"connector {self.began.source} copied its tables anew into topics that hold an earlier snapshot or "
            f"changes ({why}, or `snapshot.mode` asks for it): rows that were deleted meanwhile have no event; the "
            "resync takes the table from the new snapshot on"
        )
        return Hole(kind, table, "", position=manifest.hi, detail=detail)
