"""Which control record of an Iceberg table counts, read off its snapshots.

The newest ancestor of the current snapshot that carries a record of ours. Where a record with a higher token has stood
in the table's main line before, somebody took the table back: the data are those of the older record, the higher token
stays in force. A rollback below a record in state ``rewinding`` was announced by us and changes nothing until the next
record says so. Snapshots that never reached the main line (those of a branch that lost) do not count at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState


@dataclass(frozen=True)
class SnapshotEntry:
    """One snapshot: the one it was made from, and the record it carries where it is ours."""

    parent: int | None
    record: ControlRecord | None = None


@dataclass(frozen=True)
class TableHistory:
    """``token``: the highest one recorded in the main line, None where there is none of ours."""

    record: ControlRecord | None = None
    token: int | None = None
    restored: bool = False


def read_history(entries: Mapping[int, SnapshotEntry], current: int | None, main_line: Iterable[int]) -> TableHistory:
    """``entries``: the snapshots that the table still has, by id. ``main_line``: ids of those that were current once,
    as far as known; ids that the table has forgotten do no harm."""
    own = _newest_record(_ancestors(entries, current), entries)
    ever = [entries[one].record for one in (*main_line, *_ancestors(entries, current)) if one in entries]
    highest = max((record for record in ever if record is not None), key=lambda record: record.token, default=None)
    if highest is None:
        return TableHistory()
    if own is not None and own.token == highest.token:
        return TableHistory(own, own.token)
    if highest.state.name is TableState.REWINDING:
        return TableHistory(highest, highest.token)
    return TableHistory(own, highest.token, restored=True)


def _ancestors(entries: Mapping[int, SnapshotEntry], current: int | None) -> Iterator[int]:
    """From the current one back to the oldest that the table still has."""
    while current is not None and current in entries:
        yield current
        current = entries[current].parent


def _newest_record(ids: Iterable[int], entries: Mapping[int, SnapshotEntry]) -> ControlRecord | None:
    return next((record for one in ids if (record := entries[one].record) is not None), None)


def record_at(entries: Mapping[int, SnapshotEntry], version: int) -> ControlRecord | None:
    """The record that counts at a snapshot."""
    return _newest_record(_ancestors(entries, version), entries)


def first_behind(
    entries: Mapping[int, SnapshotEntry], current: int | None, window: int
) -> tuple[int, ControlRecord] | None:
    """The newest cursor at ``window`` or before that an ancestor of the current snapshot carries, and the first of its
    snapshots: nobody else had touched the table since it came to that cursor."""
    found: tuple[int, ControlRecord] | None = None
    for one in _ancestors(entries, current):
        record = entries[one].record
        if record is None or record.window > window:
            continue
        if found is not None and record.window != found[1].window:
            break
        found = (one, record)
    return found
