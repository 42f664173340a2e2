"""When an Iceberg table needs upkeep, by its own figures.

Every merge adds a few small files and, beside them, files that list deleted rows; every commit adds a snapshot to the
metadata file that the next one has to write anew. None of it harms until there is much of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

FILE_BYTES = 128 << 20
"""A file of this size is as good as a larger one."""

SPARE_FILES = 30
"""Small files, or files of deletes, that are borne with however small the table is: two or three dozen merges."""

DELETED_SHARE = 0.1
"""Deleted rows as a share of all: every reader skips them one by one."""

SPARE_SNAPSHOTS = 50
"""Old snapshots that are borne with: dropping them costs a pass over their files."""


class MaintenanceTask(StrEnum):
    COMPACT = "compact"
    EXPIRE = "expire"


@dataclass(frozen=True)
class TableStatistics:
    """``bytes`` of the data files. ``old_snapshots``: those that no restore needs any more."""

    data_files: int
    delete_files: int
    rows: int
    deleted_rows: int
    bytes: int
    old_snapshots: int


def due(figures: TableStatistics) -> tuple[MaintenanceTask, ...]:
    """In the order in which they are to be done."""
    enough_files = 2 * (figures.bytes // FILE_BYTES + 1)
    many_files = figures.data_files > enough_files + SPARE_FILES
    many_deletes = figures.delete_files > figures.data_files // 2 + SPARE_FILES
    heavy_deletes = figures.deleted_rows > DELETED_SHARE * figures.rows
    compact = (MaintenanceTask.COMPACT,) if many_files or many_deletes or heavy_deletes else ()
    return (*compact, *((MaintenanceTask.EXPIRE,) if figures.old_snapshots > SPARE_SNAPSHOTS else ()))


def figures_of(summary: Mapping[str, str], old_snapshots: int) -> TableStatistics:
    """``summary``: what the current snapshot says of the whole table. The rows it counts include the deleted ones."""

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
