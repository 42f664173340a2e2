"""The windows in which changes may be that a source delivers again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.staging.change_log import ChangeLog


@dataclass(frozen=True)
class RecentWindow:
    """What is needed of a manifest. ``is_recent``: sealed since the time that was asked for."""

    epoch: int
    lo: Position
    is_recent: bool
    tables: frozenset[str]
    files: tuple[DataFile, ...]


def recent_windows(log: ChangeLog, window: int, since: datetime) -> list[RecentWindow]:
    """Those before ``window``, the last one first, and the one before them. Each manifest is read once. Windows are
    sealed in order: the first one that is too old ends the search."""
    windows = list[RecentWindow]()
    for number in range(window - 1, max(log.oldest(), 1) - 1, -1):
        manifest = log.manifest(number)
        is_recent = datetime.fromisoformat(manifest.sealed_at) >= since
        files = tuple(file for part in manifest.tables.values() for file in part.files) if is_recent else ()
        windows.append(RecentWindow(manifest.epoch, manifest.lo, is_recent, frozenset(manifest.tables), files))
        if not is_recent:
            break
    return windows
