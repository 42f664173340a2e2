"""Which maintenance a Delta table needs, from its statistics.

Every merge adds a few small files and marks rows of others as deleted; files that no version needs stay in the folder
until a vacuum. Small amounts of either do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_cdc_provider.targets.delta.ddl import CHECKPOINT_INTERVAL_COMMITS

FILE_BYTES = 128 << 20
"""Files of this size need no compaction."""

TOLERATED_FILES = 30
"""Small files that are tolerated in a table of any size: those of two or three dozen merges."""

MARKED_FRACTION = 0.1
"""Fraction of rows marked deleted that is tolerated: every reader skips them one by one."""

VACUUM_INTERVAL = timedelta(days=1)
"""A vacuum lists the whole folder even if there is nothing to remove."""


class MaintenanceTask(StrEnum):
    PURGE = "purge"
    COMPACT = "compact"
    VACUUM = "vacuum"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class TableStatistics:
    """``rows`` includes those marked deleted. ``unvacuumed``: time since the last vacuum if there is something to
    remove. ``commits``: number since the last checkpoint."""

    files: int
    bytes: int
    rows: int
    marked_rows: int
    unvacuumed: timedelta
    commits: int


def due_tasks(statistics: TableStatistics, keep: timedelta) -> tuple[MaintenanceTask, ...]:
    """In order of execution: a vacuum, which others' settings of the table may refuse, is the last. ``keep``: how far
    back versions must stay readable."""
    tasks: list[MaintenanceTask] = []
    if statistics.marked_rows > MARKED_FRACTION * statistics.rows:
        tasks.append(MaintenanceTask.PURGE)
    if statistics.files > 2 * (statistics.bytes // FILE_BYTES + 1) + TOLERATED_FILES:
        tasks.append(MaintenanceTask.COMPACT)
    if statistics.commits > CHECKPOINT_INTERVAL_COMMITS:  # Spark's commits write checkpoints themselves, ours do not
        tasks.append(MaintenanceTask.CHECKPOINT)
    if statistics.unvacuumed > keep + VACUUM_INTERVAL:
        tasks.append(MaintenanceTask.VACUUM)
    return tuple(tasks)
