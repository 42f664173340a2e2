"""The progress of the copies that runs make now, from the files of their drivers in staging."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.log.copy_progress import CopyProgress, progress_path
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.open_store import open_log

COPYING = frozenset({TableState.SNAPSHOTTING, TableState.RESYNCING})
FRESH_S = 60.0
"""A driver writes its progress every few seconds; older progress has its age."""


def copy_progress(
    definition: Definition, rows: Iterable[TableRow], secrets: Callable[[Definition], Secrets]
) -> dict[str, CopyProgress]:
    """By table. A copy that has just started has none. Staging that does not answer does not hide the rest of the
    status. ``secrets``: called only if a table is being copied."""
    copying = [row.table for row in rows if row.state in COPYING]
    if not copying:
        return {}
    try:
        store = open_log(definition, secrets(definition).staging).store
        present = [table for table in copying if store.exists(progress_path(table))]
        return {table: from_plain(CopyProgress, json.loads(store.read(progress_path(table)))) for table in present}
    except (CdcError, FileNotFoundError):
        return {}


def progress_text(progress: CopyProgress, now: str) -> str:
    age_s = (datetime.fromisoformat(now) - datetime.fromisoformat(progress.at)).total_seconds()
    return f"copying: {progress}" + (f", {age_s:,.0f} s ago" if age_s > FRESH_S else "")
