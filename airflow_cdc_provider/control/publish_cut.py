"""Say, behind a run that moved tables, at which versions they can be read together."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable, select_cut_tables
from airflow_cdc_provider.core.table.state_rows import TableRow

READERS = 8


def publish_cut(replicator: Replicator, rows: Iterable[TableRow], sealed: int) -> Cut | None:
    """None where the tables do not stand at one window, or one of them moved since its row was read. Raises
    TargetUnavailable."""
    together = select_cut_tables(rows, sealed)
    if not together:
        return None
    with ThreadPoolExecutor(READERS) as pool:
        tables = list(pool.map(lambda row: _as_read(replicator, row), together))
    found = tuple(table for table in tables if table is not None)
    if len(found) < len(together):
        return None
    manifest = replicator.log.manifest(sealed)
    cut = Cut(replicator.name, sealed, manifest.watermark or manifest.commit_ts_max or manifest.sealed_at, found)
    failpoint("cut.before")
    replicator.target.publish_cut(cut)
    failpoint("cut.after")
    return cut


def _as_read(replicator: Replicator, row: TableRow) -> CutTable | None:
    """None where the table is not what the row says."""
    held = replicator.target.state(row.table, row.target)
    if held.restored or held.control is None or row.control is None or held.control.token != row.control.token:
        return None
    return CutTable(row.target, held.control.window, held.identity, held.version)
