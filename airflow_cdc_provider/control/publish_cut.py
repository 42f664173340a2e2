"""Publishes, after a run that changed tables, the versions at which they can be read together."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable, select_cut_tables
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.staging.whole_windows import WholeWindows

READERS = 8


def publish_cut(
    replicator: Replicator, target: str, rows: Iterable[TableRow], sealed: int, windows: WholeWindows
) -> Cut | None:
    """The cut of the copies in one target, given by its name. None if they are not at one window, or one has a newer
    commit than its row. Raises TargetUnavailable."""
    of_target = (row for row in rows if target_of_copy(row.table) == target)
    passed = (row for row in of_target if not _is_before_cut_windows(windows, row, sealed))
    candidates = select_cut_tables(passed, sealed)
    if not candidates:
        return None
    with ThreadPoolExecutor(READERS) as pool:
        tables = list(pool.map(lambda row: _cut_table(replicator, row), candidates))
    cut_tables = tuple(table for table in tables if table is not None)
    if len(cut_tables) < len(candidates):
        return None
    manifest = replicator.log.manifest(sealed)
    cut = Cut(replicator.name, sealed, manifest.watermark or manifest.commit_ts_max or manifest.sealed_at, cut_tables)
    failpoint("cut.before")
    replicator.targets.named(target).publish_cut(cut)
    failpoint("cut.after")
    return cut


def _is_before_cut_windows(windows: WholeWindows, row: TableRow, sealed: int) -> bool:
    """Whether all windows since the table's copy end before changes that the copy may contain."""
    control = row.control
    if control is None or control.high is None or row.passed < max(control.high, sealed):
        return False
    return not windows.is_replayed(control.source_table, control.high, row.passed)


def _cut_table(replicator: Replicator, row: TableRow) -> CutTable | None:
    """None if the table does not match its row."""
    current = replicator.targets.state(row.table, row.target)
    if current.restored or current.control is None or row.control is None or current.control.token != row.control.token:
        return None
    window = current.control.window
    return CutTable(row.target, window, current.identity, current.version, row.table, current.shared)
