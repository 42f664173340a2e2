"""The fold of change records in plain Python, after the definition of correctness, without Spark."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation

Image = dict[str, Any]
FETCHED: Image = {"fetched": True}
"""Stands for a row that must be fetched."""


@dataclass
class Holder:
    image: Image
    row_id: str | None


def in_order(records: Iterable[ChangeRecord], columns: tuple[str, ...]) -> dict[str, Image]:
    """For sources that deliver in order, or whose order keys give the order; two rows may have one key in a
    transaction."""
    held: dict[str, list[Holder]] = defaultdict(list)
    departed: dict[str, Holder] = {}
    seen: set[tuple[str, str | None, str]] = set()
    for record in sorted(records, key=lambda one: one.order_key):
        same = (record.order_key, record.key or record.key_before, record.op)
        if record.op == Operation.TRUNCATE:
            held.clear()
        if record.op in CONTROL_OPERATIONS or same in seen:
            continue
        seen.add(same)
        if record.op == Operation.DELETE:
            assert record.key_before is not None
            gone = _departing(held[record.key_before], record)
            if gone is not None and record.link_id:
                departed[record.link_id] = gone
            continue
        assert record.key is not None and record.op != Operation.UNREADABLE, record
        _arrive(held[record.key], record, columns, departed)
    assert all(len(holders) <= 1 for holders in held.values()), "two rows have one key at the end"
    return {key: holders[0].image for key, holders in held.items() if holders}


def _departing(holders: list[Holder], record: ChangeRecord) -> Holder | None:
    """By row id if both sides have one, else by the image before, else the oldest one."""
    before = json.loads(record.before or "{}")
    for holder in holders:
        if record.row_id and holder.row_id:
            same = holder.row_id == record.row_id
        else:
            same = all(holder.image.get(name) == value for name, value in before.items())
        if same:
            holders.remove(holder)
            return holder
    return holders.pop(0) if holders else None


def _arrive(holders: list[Holder], record: ChangeRecord, columns: tuple[str, ...], departed: dict[str, Holder]) -> None:
    after = json.loads(record.after or "{}")
    if record.refetch:
        holders[:] = [Holder(FETCHED, None)]
        return
    known: Image = dict.fromkeys(columns)
    beside = record.op == Operation.INSERT
    if beside and record.link_id in departed:
        known |= departed[record.link_id].image
    elif record.op in (Operation.UPDATE, Operation.UPSERT):
        was = _departing(holders, record)
        assert was or record.op == Operation.UPSERT, "an update without a row"
        known |= was.image if was else {}
    if not beside and record.op != Operation.UPDATE:
        holders.clear()
    holders.append(Holder(known | after, record.row_id))


def newest(records: Iterable[ChangeRecord]) -> dict[str, Image]:
    """Sources that deliver in any order: per key the largest order key."""
    last: dict[str, ChangeRecord] = {}
    for record in records:
        key = record.key_before if record.op == Operation.DELETE else record.key
        assert key is not None and record.op not in (*CONTROL_OPERATIONS, Operation.UNREADABLE), record
        if key not in last or record.order_key > last[key].order_key:
            last[key] = record
    return {key: json.loads(one.after or "") for key, one in last.items() if one.op != Operation.DELETE}
