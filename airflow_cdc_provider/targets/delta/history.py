"""Which control record of a Delta table counts, read off its history.

The newest commit of ours counts, unless somebody restored the table to before it: Delta's RESTORE takes the data back
but keeps the recorded token high. Then what counted at the restored version counts. A RESTORE above a record in state
``rewinding`` was announced by us and changes nothing until the next record says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState

BEFORE_EVERYTHING = -1
"""Where a RESTORE to a point of time went: its version is not in the history, so nothing is known to count there."""


@dataclass(frozen=True)
class Commit:
    """One version of the table: our record where it is ours, the version it went back to where it is a RESTORE."""

    version: int
    record: ControlRecord | None = None
    restored_to: int | None = None


@dataclass(frozen=True)
class TableHistory:
    """``known`` is False where the history given does not reach back far enough to tell."""

    record: ControlRecord | None
    restored: bool
    known: bool


def read_commit(entry: Mapping[str, Any], replicator: str, table: str) -> Commit:
    version = int(entry["version"])
    if entry.get("operation") == "RESTORE":
        target = entry.get("operationParameters", {}).get("version")
        return Commit(version, restored_to=BEFORE_EVERYTHING if target is None else int(target))
    return Commit(version, record=_own_record(entry.get("userMetadata"), replicator, table))


def read_history(commits: Sequence[Commit], at: int | None = None) -> TableHistory:
    """``commits`` newest first. ``at``: as of this version instead of the newest."""
    below = [commit for commit in commits if at is None or commit.version <= at]
    restore: Commit | None = None
    for commit in below:
        if commit.record is not None:
            if restore is None or commit.record.state.name is TableState.REWINDING:
                return TableHistory(commit.record, restored=False, known=True)
            break
        if restore is None and commit.restored_to is not None:
            restore = commit
    if restore is None or restore.restored_to is None:
        return TableHistory(None, restored=restore is not None, known=False)
    earlier = read_history(commits, restore.restored_to)
    return TableHistory(earlier.record, restored=True, known=earlier.known)


def _own_record(metadata: Any, replicator: str, table: str) -> ControlRecord | None:
    if not isinstance(metadata, str) or not metadata.startswith("{"):
        return None
    try:
        body = json.loads(metadata)
    except json.JSONDecodeError:
        return None
    if body.get("replicator") != replicator or body.get("table") != table:
        return None
    return from_plain(ControlRecord, body)
