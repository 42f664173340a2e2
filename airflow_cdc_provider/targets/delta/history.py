"""Finds the control record in force in the history of a Delta table.

It is that of our newest commit, unless others restored the table to an earlier version: Delta's RESTORE takes the data
back and leaves the recorded token high. Then it is the record that was in force at the restored version. A RESTORE
above a record in state ``rewinding`` is our own and changes nothing until the next record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState

UNKNOWN_VERSION = -1
"""The version of a RESTORE by timestamp, which the history does not contain; no record is known there."""


@dataclass(frozen=True)
class Commit:
    """One version of the table: its control record if it is ours, the restored version if it is a RESTORE."""

    version: int
    record: ControlRecord | None = None
    restored_to: int | None = None


@dataclass(frozen=True)
class TableHistory:
    """``complete`` is False if the given part of the history does not reach back far enough."""

    record: ControlRecord | None
    restored: bool
    complete: bool


def read_commit(entry: Mapping[str, Any], replicator: str, table: str) -> Commit:
    version = int(entry["version"])
    if entry.get("operation") == "RESTORE":
        target = entry.get("operationParameters", {}).get("version")
        return Commit(version, restored_to=UNKNOWN_VERSION if target is None else int(target))
    return Commit(version, record=_own_record(entry.get("userMetadata"), replicator, table))


def read_history(commits: Sequence[Commit], at: int | None = None) -> TableHistory:
    """``commits``: newest first. ``at``: as of this version instead of the newest."""
    below = [commit for commit in commits if at is None or commit.version <= at]
    restore: Commit | None = None
    for commit in below:
        if commit.record is not None:
            if restore is None or commit.record.state.name is TableState.REWINDING:
                return TableHistory(commit.record, restored=False, complete=True)
            break
        if restore is None and commit.restored_to is not None:
            restore = commit
    if restore is None or restore.restored_to is None:
        return TableHistory(None, restored=restore is not None, complete=False)
    earlier = read_history(commits, restore.restored_to)
    return TableHistory(earlier.record, restored=True, complete=earlier.complete)


def newest_record(entries: Sequence[Mapping[str, Any]], replicator: str) -> ControlRecord | None:
    """Of any copy in the table. ``entries``: newest first."""
    records = (_own_record(entry.get("userMetadata"), replicator) for entry in entries)
    return next(filter(None, records), None)


def _own_record(metadata: Any, replicator: str, table: str = "") -> ControlRecord | None:
    """``table``: empty for any copy."""
    if not isinstance(metadata, str) or not metadata.startswith("{"):
        return None
    try:
        body = json.loads(metadata)
    except json.JSONDecodeError:
        return None
    if body.get("replicator") != replicator or table not in ("", body.get("table")):
        return None
    return from_plain(ControlRecord, body)
