"""Which maintenance a Delta table needs, from its statistics.

Every merge adds a few small files and marks rows of others as deleted; files that no version needs stay in the folder
until a vacuum. Small amounts of either do no harm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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


LOG_RETENTION = "delta.logRetentionDuration"
"""How long commits stay in the table's log. A checkpoint removes older ones."""

DEFAULT_LOG_RETENTION = timedelta(days=30)
"""Of a table without the setting: Delta's own."""


class MaintenanceTask(StrEnum):
    RETAIN_LOG = "retain log"
    PURGE = "purge"
    COMPACT = "compact"
    VACUUM = "vacuum"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class TableStatistics:
    """``rows`` includes those marked deleted. ``unvacuumed``: time since the last vacuum if there is something to
    remove. ``commits``: number since the last checkpoint. ``log_retention``: how long commits stay."""

    files: int
    bytes: int
    rows: int
    marked_rows: int
    unvacuumed: timedelta
    commits: int
    log_retention: timedelta = DEFAULT_LOG_RETENTION


def due_tasks(statistics: TableStatistics, keep: timedelta) -> tuple[MaintenanceTask, ...]:
    """In order of execution: a vacuum, which others' settings of the table may refuse, is the last. ``keep``: how far
    back versions must stay readable."""
    tasks: list[MaintenanceTask] = []
    if statistics.log_retention < keep:
        tasks.append(MaintenanceTask.RETAIN_LOG)
    if statistics.marked_rows > MARKED_FRACTION * statistics.rows:
        tasks.append(MaintenanceTask.PURGE)
    if statistics.files > 2 * (statistics.bytes // FILE_BYTES + 1) + TOLERATED_FILES:
        tasks.append(MaintenanceTask.COMPACT)
    if statistics.commits > CHECKPOINT_INTERVAL_COMMITS:  # Spark's commits write checkpoints themselves, ours do not
        tasks.append(MaintenanceTask.CHECKPOINT)
    if statistics.unvacuumed > keep + VACUUM_INTERVAL:
        tasks.append(MaintenanceTask.VACUUM)
    return tuple(tasks)


def log_retention(configuration: Mapping[str, str]) -> timedelta:
    """By the table's settings, ``interval 30 days``. One in months or years, whose length varies, counts as
    unlimited."""
    setting = configuration.get(LOG_RETENTION)
    if setting is None:
        return DEFAULT_LOG_RETENTION
    found = re.fullmatch(r"\s*(?:interval\s+)?(\d+)\s+(second|minute|hour|day|week)s?\s*", setting, re.IGNORECASE)
    return timedelta(**{f"{found[2].lower()}s": int(found[1])}) if found else timedelta.max
