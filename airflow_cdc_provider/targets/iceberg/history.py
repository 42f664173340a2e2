"""Finds the control record in force in the snapshots of an Iceberg table.

It is that of the newest ancestor of the current snapshot with a record of ours. If the main line has had a record with
a higher token, the table was restored by others: the data are those of the older record, the higher token remains in
force. A rollback below a record in state ``rewinding`` is our own and changes nothing until the next record. Snapshots
that never reached the main line, such as those of a branch that lost, are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot: its parent, and its control record if it is ours."""

    parent: int | None
    record: ControlRecord | None = None


@dataclass(frozen=True)
class TableHistory:
    """``token``: the highest one recorded in the main line, None if none is ours."""

    record: ControlRecord | None = None
    token: int | None = None
    restored: bool = False


def read_history(entries: Mapping[int, SnapshotEntry], current: int | None, main_line: Iterable[int]) -> TableHistory:
    """``entries``: the snapshots that the table still has, by id. ``main_line``: ids of snapshots that were once
    current, as far as known; those that have expired are ignored."""
    own = _newest_record(_ancestors(entries, current), entries)
    recorded = [
        entries[snapshot_id].record
        for snapshot_id in (*main_line, *_ancestors(entries, current))
        if snapshot_id in entries
    ]
    highest = max((record for record in recorded if record is not None), key=lambda record: record.token, default=None)
    if highest is None:
        return TableHistory()
    if own is not None and own.token == highest.token:
        return TableHistory(own, own.token)
    if highest.state.name is TableState.REWINDING:
        return TableHistory(highest, highest.token)
    return TableHistory(own, highest.token, restored=True)


def _ancestors(entries: Mapping[int, SnapshotEntry], current: int | None) -> Iterator[int]:
    """From the current snapshot back to the oldest that the table still has."""
    while current is not None and current in entries:
        yield current
        current = entries[current].parent


def _newest_record(ids: Iterable[int], entries: Mapping[int, SnapshotEntry]) -> ControlRecord | None:
    return next((record for snapshot_id in ids if (record := entries[snapshot_id].record) is not None), None)


def record_at(entries: Mapping[int, SnapshotEntry], version: int) -> ControlRecord | None:
    """The record in force at a snapshot."""
    return _newest_record(_ancestors(entries, version), entries)


def first_at_or_before(
    entries: Mapping[int, SnapshotEntry], current: int | None, window: int
) -> tuple[int, ControlRecord] | None:
    """Among the ancestors of the current snapshot, the newest cursor at ``window`` or before, and the first snapshot
    with that cursor, which no other writer had changed yet. A commit of several snapshots is there with its last one,
    which has its columns."""
    earliest: tuple[int, ControlRecord] | None = None
    for snapshot_id in _ancestors(entries, current):
        record = entries[snapshot_id].record
        if record is None or record.window > window:
            continue
        if earliest is not None and record.window != earliest[1].window:
            break
        if earliest is not None and record.nonce == earliest[1].nonce:
            continue
        earliest = (snapshot_id, record)
    return earliest
