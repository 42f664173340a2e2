"""One row of a log of rows, whoever writes it: what a change record needs of it, and how it is read once more. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord


class Row(NamedTuple):
    """A change of one row, in the terms of a change record. ``moved``: the key changed."""

    op: Operation
    key_before: str | None
    key: str | None
    before: str | None
    after: str | None
    before_complete: bool
    after_complete: bool
    warnings: tuple[str, ...]
    moved: bool = False


class DecodedPart(NamedTuple):
    """What is left of a row that cannot be read: its key where that can be, the columns that can be, as canonical JSON
    texts, and the names of the others."""

    key: str | None
    known: dict[str, str]
    columns: tuple[str, ...]

    @property
    def values(self) -> dict[str, object]:
        return {name: json.loads(text) for name, text in self.known.items()}


class UndecodedRow(NamedTuple):
    """``key`` is None where it cannot be told."""

    key: str | None
    record: UndecodedRecord


def halves(row: Row) -> tuple[tuple[int, Row], ...]:
    """A changed key is a row that leaves and a row that comes; together they are one change."""
    gone = Row(Operation.DELETE, row.key_before, None, row.before, None, row.before_complete, False, row.warnings)
    come = Row(Operation.INSERT, None, row.key, None, row.after, False, row.after_complete, row.warnings)
    return (DEPARTS, gone), (ARRIVES, come)


def parted(old: DecodedPart | None, new: DecodedPart, whole: UndecodedRecord) -> tuple[Row | None, UndecodedRow]:
    """``whole`` with the key it waits for. First the row that left its key, where the change moved one and both keys
    can be read."""
    moved = old is not None and old.key != new.key
    if not moved or new.key is None or old is None or old.key is None:
        return None, UndecodedRow(None if moved else new.key, whole)
    gone = Row(Operation.DELETE, old.key, None, canonical(old.values), None, False, False, ())
    return gone, UndecodedRow(new.key, replace(whole, op=Operation.INSERT.value))


def as_reread(record: ChangeRecord, row: Row | None) -> list[ChangeRecord]:
    """What takes the place of a record that was put aside, now that its row can be read; None: the filter leaves it
    out. Of a row that moved, what left its key may have been told already."""
    if row is None:
        return []
    if not row.moved:
        return [_with_row(record, row)]
    order_key = record.order_key[:-2]
    both = [
        replace(_with_row(record, half), order_key=f"{order_key}{phase:02x}", phase=phase, link_id=order_key)
        for phase, half in halves(row)
    ]
    return both[1:] if record.phase == ARRIVES else both


def _with_row(record: ChangeRecord, row: Row) -> ChangeRecord:
    return replace(
        record,
        op=row.op,
        key_before=row.key_before,
        key=row.key,
        before=row.before,
        after=row.after,
        before_complete=row.before_complete,
        after_complete=row.after_complete,
        warnings=row.warnings,
    )
