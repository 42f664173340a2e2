"""The changes of a key as the lives of its rows, and the row that the last life leaves.

A life begins with an insert, or with the first change after a delete, and contains the delete that ends it. Of each
column the newest known value counts; the changes of a life are read from the last to the first, and no further than the
first whole image. A life that begins with a partial image from another key (``arrived``) continues the life that
departed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, IMAGE_OPERATIONS, Operation
from airflow_cdc_provider.core.table.merge_plan import CONFLICTING_CHANGES, GONE, LIVE, NO_ROW, PUT
from spark_jobs.folds.json_members import elements, image_of, members

BEGINS = frozenset({Operation.INSERT, Operation.READ, Operation.REPLACE})
NULL = "null"


class FoldError(Exception):
    """Its text is one of the markers of ``core.table.merge_plan``, which ``writers.merge_errors`` recognises."""


class Entry(NamedTuple):
    """What a fold reads of a change record. ``key`` is the key that the record is an entry of."""

    key: str
    order_key: str
    op: str
    after: str | None
    after_complete: bool
    phase: int | None
    link_id: str | None
    schema_id: str

    @property
    def deletes(self) -> bool:
        return self.op == Operation.DELETE

    @property
    def whole(self) -> bool:
        """``replace`` sets every column that it does not name to NULL."""
        return self.after_complete or self.op == Operation.REPLACE

    @property
    def incomplete(self) -> bool:
        return self.op in IMAGE_OPERATIONS and not self.whole


class Row(NamedTuple):
    """One row to merge: ``op``, ``order_key`` and ``known`` as ``core.merge_plan`` describes. ``image`` contains the
    known values and the key. ``root``: the key of the target row that has the values which are not known, and whether
    that row may be missing."""

    key: str
    op: str
    order_key: str
    image: str
    known: list[str] | None
    root: str | None = None
    root_may_be_missing: bool = False


@dataclass(frozen=True)
class Rules:
    """``names``: the table's columns, ``key`` those of its key. ``initials``: by schema id, the initial values of the
    columns that the schema lacks, as JSON. ``keep_deleted``: a deleted row keeps its last values (soft delete).
    ``ignore_deletes``: it stays as it was. ``truncated``: no row older than the changes is left. ``own_row``: a row
    that moved takes unknown columns from its own row, not from the departed one (repair)."""

    names: tuple[str, ...]
    key: tuple[str, ...]
    initials: Mapping[str, Mapping[str, str]]
    keep_deleted: bool = False
    ignore_deletes: bool = False
    truncated: bool = False
    own_row: bool = False


@dataclass(frozen=True)
class Life:
    """``entries`` in their order, at least one. ``begins``: no earlier row of the key is left when it starts."""

    entries: Sequence[Entry]
    begins: bool
    rules: Rules

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def last(self) -> Entry:
        return self.entries[-1]

    @cached_property
    def put(self) -> bool:
        return any(entry.op == Operation.UPSERT for entry in self.entries)

    @property
    def arrived(self) -> bool:
        first = self.first
        return first.phase == ARRIVES and first.link_id is not None and not first.whole

    @property
    def born(self) -> bool:
        """No earlier row has values of this life: what it lacks is NULL. After a truncate an upsert, too,
        starts a row."""
        starts = self.first.op in BEGINS or self.first.op == Operation.UPSERT
        begins = starts and (self.begins or self.rules.truncated)
        return (begins and not self.arrived) or self.first.whole

    @property
    def orphan(self) -> bool:
        """Partial, and no row has the rest: after a truncate, or an update after a delete. In a repair an arrived row
        has its own row."""
        rules = self.rules
        dead = (self.begins or rules.truncated) and not self.born
        return dead if rules.truncated and not rules.own_row else dead and not self.arrived

    def add_values(self, values: dict[str, str]) -> None:
        """Adds the known values of columns that ``values`` lacks."""
        for entry in reversed(self.entries):
            if len(values) == len(self.rules.names):
                return
            if entry.after is None:
                continue
            image = dict(members(entry.after))
            if entry.whole:
                image = {**self.rules.initials.get(entry.schema_id, {}), **image}
                for name in self.rules.names:
                    values.setdefault(name, image.get(name, NULL))
                return
            for name in self.rules.names:
                if name in image:
                    values.setdefault(name, image[name])


def last_rows(groups: Iterable[Sequence[Entry]], rules: Rules) -> Iterator[Row]:
    """The row of each key. ``groups``: the entries of one key each, in their order. A chain of moves must be contained
    whole. Raises FoldError."""
    lives = {group[0].key: list(lives_of(group, rules)) for group in groups}
    departed = {life.last.link_id: life for of_key in lives.values() for life in of_key if life.last.phase == DEPARTS}
    for of_key in lives.values():
        yield row_of(of_key[-1], departed, rules)


def lives_of(entries: Sequence[Entry], rules: Rules) -> Iterator[Life]:
    """The lives of a key. Repeated entries are read once. Raises FoldError where two of one order key differ."""
    current, begins, previous = list[Entry](), False, None
    for entry in entries:
        if previous is not None and entry.order_key == previous.order_key:
            if signature(entry) != signature(previous):
                raise FoldError(CONFLICTING_CHANGES)
            continue
        starts = entry.op in BEGINS or (previous is not None and previous.deletes)
        if starts and current:
            yield Life(current, begins, rules)
            current = []
        if not current:
            begins = starts
        current.append(entry)
        previous = entry
    yield Life(current, begins, rules)


def signature(entry: Entry) -> tuple[str, str | None] | None:
    """What an entry says. Two rows that a copy read at one position may differ: the copy may have begun anew while the
    position of the source's log did not change."""
    return None if entry.op == Operation.READ else (entry.op, entry.after)


def row_of(life: Life, departed: Mapping[str | None, Life], rules: Rules) -> Row:
    chain = list(_chain(life, departed, rules))
    origin = chain[-1]
    gone = life.last.deletes and not (rules.ignore_deletes and any(not entry.deletes for entry in life.entries))
    values = dict[str, str]()
    if not gone or rules.keep_deleted:
        for member in chain:
            member.add_values(values)
    known: list[str] | None = [name for name in rules.names if name in values]
    whole = len(values) == len(rules.names)
    if gone:
        known = (None if whole else known) if rules.keep_deleted else []
    elif origin.born or whole:
        known = None
    elif life.orphan:
        raise FoldError(NO_ROW)
    if origin.born:
        for name, value in rules.initials.get(life.first.schema_id, {}).items():
            values.setdefault(name, value)
    values |= zip(rules.key, elements(life.first.key), strict=True)
    op = GONE if gone else PUT if life.put else LIVE
    row = Row(life.first.key, op, life.last.order_key, image_of(values), known)
    if len(chain) == 1 or origin.born or gone or known is None:
        return row
    return row._replace(root=origin.first.key, root_may_be_missing=origin.put)


def _chain(life: Life, departed: Mapping[str | None, Life], rules: Rules) -> Iterator[Life]:
    """The life, the one that it continues at another key, and so on."""
    yield life
    while life.arrived and not rules.own_row and (before := departed.get(life.first.link_id)) is not None:
        yield before
        life = before
