"""When a Delta table needs upkeep, by its own figures.

Every merge adds a few small files and marks rows of others as deleted; what no version needs any more stays in the
folder until it is vacuumed. None of it harms until there is much of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_cdc_provider.targets.delta.ddl import CHECKPOINT_INTERVAL_COMMITS

FILE_BYTES = 128 << 20
"""A file of this size is as good as a larger one."""

SPARE_FILES = 30
"""Small files that are borne with however small the table is: two or three dozen merges."""

MARKED_SHARE = 0.1
"""Rows marked deleted as a share of the table's rows: every reader skips them one by one."""

BETWEEN_VACUUMS = timedelta(days=1)
"""A vacuum lists the whole folder, needed or not."""


class MaintenanceTask(StrEnum):
    PURGE = "purge"
    COMPACT = "compact"
    VACUUM = "vacuum"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class TableStatistics:
    """``rows``: those marked deleted included. ``unvacuumed``: how long the table has gone without a vacuum while
    there was something to remove. ``commits``: those behind the last checkpoint."""

    files: int
    bytes: int
    rows: int
    marked_rows: int
    unvacuumed: timedelta
    commits: int


def due(figures: TableStatistics, keep: timedelta) -> tuple[MaintenanceTask, ...]:
    """In the order in which they are to be done. ``keep``: how far back a version must stay readable."""
    chores: list[MaintenanceTask] = []
    if figures.marked_rows > MARKED_SHARE * figures.rows:
        chores.append(MaintenanceTask.PURGE)
    if figures.files > 2 * (figures.bytes // FILE_BYTES + 1) + SPARE_FILES:
        chores.append(MaintenanceTask.COMPACT)
    if figures.unvacuumed > keep + BETWEEN_VACUUMS:
        chores.append(MaintenanceTask.VACUUM)
    if figures.commits > CHECKPOINT_INTERVAL_COMMITS:  # commits of Spark write one by themselves, ours do not
        chores.append(MaintenanceTask.CHECKPOINT)
    return tuple(chores)
