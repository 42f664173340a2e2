"""Records of a batch that cannot be applied, and the later records of their keys, which wait for them (are parked).

A key is released by a record with its complete row, or by its delete: then earlier records do not matter. In a history
they do: there an operator releases it. Otherwise it waits from the start of the record's transaction on, because two
rows may have one key within a transaction. A row that moves to another key without all its columns ties the two keys
together: if one half of the move waits, so does the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from spark_jobs.quarantine.entries import Entries, Mark, MarkedEntries, Span, Split

E = TypeVar("E", bound=Entries)


@dataclass(frozen=True)
class Parking:
    """``marks``: the positions of bad and dirty records of known keys. ``until_decided``: those of them that no later
    record settles. ``discarded_inserts``: discarded records that would have created a row. ``ignore_deletes``: a delete
    does not settle a key. ``doubly_held``: two rows may have one key within a transaction. ``moves``: some rows move
    without all columns. ``now``: ISO time."""

    marks: Sequence[Mark]
    until_decided: Collection[Mark]
    discarded_inserts: Sequence[Mark]
    ignore_deletes: bool
    doubly_held: bool
    moves: bool
    now: str


@dataclass(frozen=True)
class PartitionedRecords(Generic[E]):
    """``parks``: some records may be parked. ``orphans``: how many partial changes are dropped with a discarded row."""

    split: Split[E]
    parks: bool
    orphans: int


def partition_records(entries: E, parking: Parking) -> PartitionedRecords[E]:
    """``entries``: bad and dirty records have their ``kind``, all others have none; ``since`` is set where they were
    parked before."""
    marked, orphans = entries.marked(parking.moves, parking.ignore_deletes), 0
    if parking.discarded_inserts:
        contexts = marked.contexts(parking.discarded_inserts, doubly_held=False)
        marked, orphans = marked.without_updates_in([Span(one.at.k, one.at.mark, one.settled) for one in contexts])
    cuts = _cuts(marked, parking)
    return PartitionedRecords(marked.split(cuts, parking.now), bool(cuts), orphans)


def settled_marks(entries: Entries, marks: Sequence[Mark], ignore_deletes: bool) -> set[Mark]:
    """The marks after which a record has the complete row, or deletes it."""
    contexts = entries.marked(False, ignore_deletes).contexts(marks, doubly_held=False)
    return {context.at for context in contexts if not context.is_open}


def _cuts(entries: MarkedEntries[E], parking: Parking) -> dict[str, str]:
    """Keys that wait, each with the order key from which it waits."""
    marks = set(parking.marks)
    while marks:
        cuts: dict[str, str] = {}
        for context in entries.contexts(marks, parking.doubly_held):
            if context.is_open or context.at in parking.until_decided:
                begun = min(context.at.mark, context.begun or context.at.mark)
                cuts[context.at.k] = min(begun, cuts.get(context.at.k, begun))
        linked = set(entries.linked_halves(cuts)) - marks if parking.moves and cuts else set()
        if not linked:
            return cuts
        marks |= linked
    return {}
