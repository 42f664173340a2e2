"""Which maintenance an Iceberg table needs, from its statistics.

Every merge adds a few small data files and delete files; every commit adds a snapshot to the metadata file, which the
next commit writes again. Small amounts of either do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.targets.iceberg.commits import CURSOR_TAG

FILE_BYTES = 128 << 20
"""Files of this size need no compaction."""

TOLERATED_FILES = 30
"""Small data or delete files that are tolerated in a table of any size: those of two or three dozen merges."""

DELETED_FRACTION = 0.1
"""Fraction of deleted rows that is tolerated: every reader skips them one by one."""

TOLERATED_SNAPSHOTS = 50
"""Old snapshots that are tolerated: expiring them costs a pass over their files."""

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""A snapshot may be earlier than its parent by this much, as Iceberg allows for."""


class MaintenanceTask(StrEnum):
    COMPACT = "compact"
    EXPIRE = "expire"


@dataclass(frozen=True)
class TableStatistics:
    """``bytes`` of the data files. ``old_snapshots``: those that no restore needs."""

    data_files: int
    delete_files: int
    rows: int
    deleted_rows: int
    bytes: int
    old_snapshots: int


def expirable_before(metadata: Any, needed_since: datetime) -> datetime:
    """Snapshots from before this time may be expired. Those above the newest commit of a copy show that it is part of
    the table: in a table that copies share, an idle or paused one has many above it."""
    tagged = {ref.snapshot_id for name, ref in metadata.refs.items() if name.startswith(CURSOR_TAG)}
    committed = (one.timestamp_ms for one in metadata.snapshots if one.snapshot_id in tagged)
    oldest = min((datetime.fromtimestamp(at / 1000, UTC) - CLOCK_DIFFERENCE for at in committed), default=needed_since)
    return min(oldest, needed_since)


def due_tasks(statistics: TableStatistics) -> tuple[MaintenanceTask, ...]:
    """In order of execution."""
    enough_files = 2 * (statistics.bytes // FILE_BYTES + 1)
    many_files = statistics.data_files > enough_files + TOLERATED_FILES
    many_deletes = statistics.delete_files > statistics.data_files // 2 + TOLERATED_FILES
    heavy_deletes = statistics.deleted_rows > DELETED_FRACTION * statistics.rows
    compact = (MaintenanceTask.COMPACT,) if many_files or many_deletes or heavy_deletes else ()
    return (*compact, *((MaintenanceTask.EXPIRE,) if statistics.old_snapshots > TOLERATED_SNAPSHOTS else ()))


def table_statistics(summary: Mapping[str, str], old_snapshots: int) -> TableStatistics:
    """``summary``: that of the current snapshot, with totals of the table. Its rows include deleted ones."""

    def total(name: str) -> int:
        return int(summary.get(f"total-{name}", 0))

    return TableStatistics(
        total("data-files"),
        total("delete-files"),
        total("records"),
        total("position-deletes"),
        total("files-size"),
        old_snapshots,
    )
