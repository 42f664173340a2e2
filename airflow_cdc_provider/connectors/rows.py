"""One row change of a row-based log, in the terms of a change record, and how it is decoded again. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord


class Row(NamedTuple):
    """A change of one row, in the terms of a change record."""

    op: Operation
    key_before: str | None
    key: str | None
    before: str | None
    after: str | None
    before_complete: bool
    after_complete: bool
    warnings: tuple[str, ...]
    key_changed: bool = False


class DecodedPart(NamedTuple):
    """The readable part of a row that cannot be decoded: its ``key``, None if it cannot be decoded, the ``known``
    columns as canonical JSON texts, and the names of the other ``columns``."""

    key: str | None
    known: dict[str, str]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, key: Sequence[str], known: dict[str, str], columns: Sequence[str]) -> DecodedPart:
        """``key``: the key columns."""
        parts = [known.get(name) for name in key]
        return cls(f"[{','.join(map(str, parts))}]" if parts and None not in parts else None, known, tuple(columns))

    @property
    def values(self) -> dict[str, object]:
        return {name: json.loads(text) for name, text in self.known.items()}


class UndecodedRow(NamedTuple):
    """``key`` is None if it cannot be decoded."""

    key: str | None
    record: UndecodedRecord


def split_key_change(row: Row) -> tuple[tuple[int, Row], ...]:
    """A key change as its two records, with their phases: the departing row and the arriving row."""
    departing = Row(Operation.DELETE, row.key_before, None, row.before, None, row.before_complete, False, row.warnings)
    arriving = Row(Operation.INSERT, None, row.key, None, row.after, False, row.after_complete, row.warnings)
    return (DEPARTS, departing), (ARRIVES, arriving)


def split_undecoded(
    old: DecodedPart | None, new: DecodedPart, record: UndecodedRecord
) -> tuple[Row | None, UndecodedRow]:
    """``record`` with its key. For a key change whose two keys can be decoded, the departing row precedes it."""
    key_changed = old is not None and old.key != new.key
    if not key_changed or new.key is None or old is None or old.key is None:
        return None, UndecodedRow(None if key_changed else new.key, record)
    departing = Row(Operation.DELETE, old.key, None, canonical(old.values), None, False, False, ())
    return departing, UndecodedRow(new.key, replace(record, op=Operation.INSERT.value))


def reread_records(record: ChangeRecord, row: Row | None) -> list[ChangeRecord]:
    """The records that replace a quarantined record now that its ``row`` is decoded; None if the row filter leaves it
    out. The departing row of a key change may have been sealed before; then only the arriving row is returned."""
    if row is None:
        return []
    if not row.key_changed:
        return [_with_row(record, row)]
    order_key = record.order_key[:-2]
    both = [
        replace(_with_row(record, part), order_key=f"{order_key}{phase:02x}", phase=phase, link_id=order_key)
        for phase, part in split_key_change(row)
    ]
    return both[1:] if record.phase == ARRIVES else both


def _with_row(record: ChangeRecord, row: Row) -> ChangeRecord:
    fields = row._asdict()
    del fields["key_changed"]
    return replace(record, **fields)
