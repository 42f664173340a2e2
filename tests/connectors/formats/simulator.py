"""A source: rows, transactions, a log, independent of formats. Every copy must end with its rows.

A row is (id, name, amount, at, wide); the id is the key, and may change if the source allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TypeAlias

Row: TypeAlias = "tuple[int, str | None, Decimal | None, datetime | None, str | None]"
COLUMNS = ("id", "name", "amount", "at", "wide")
KEYS = range(9)
NAMES = ("", "a", "é", '"', "\\", None)
EPOCH = datetime(2024, 2, 29, 12, 34, 56)


@dataclass(frozen=True)
class Change:
    """``position``: that of the change in the log. ``statement``: that of its statement, in which it has number
    ``ordinal``. ``commit``: the end of its transaction, in which it has number ``seq`` (from 1). The ``row_id`` stays
    when the key moves."""

    old: Row | None
    new: Row | None
    row_id: int
    position: int = 0
    statement: int = 0
    ordinal: int = 0
    seq: int = 0
    tx: int = 0
    commit: int = 0
    commit_before: int = 0

    @property
    def moved(self) -> bool:
        return self.old is not None and self.new is not None and self.old[0] != self.new[0]


@dataclass
class History:
    """``start``: the rows that a copy reads; the changes follow it."""

    start: tuple[Row, ...]
    end: dict[int, Row] = field(default_factory=dict)
    transactions: list[list[Change]] = field(default_factory=list)

    @property
    def changes(self) -> list[Change]:
        """In the order in which they were committed."""
        return [change for transaction in self.transactions for change in transaction]


class Simulator:
    """``moves``: keys may change. ``late_check``: whether keys are unique is checked at the end of a statement."""

    def __init__(self, random: Random, moves: bool, late_check: bool) -> None:
        self._random = random
        self._rows: dict[int, Row] = {}
        self._next_id = 0
        self._log = 1000
        self._statements: list[Callable[[], list[Change]]] = [
            self._insert,
            self._update,
            self._update,
            self._delete,
            self._revive,
        ]
        if moves:
            self._statements += [self._move, self._shift]
        if moves and late_check:
            self._statements.append(self._swap)
        self._late_check = late_check

    def history(self, transactions: int) -> History:
        for key in self._random.sample(KEYS, 4):
            self._rows[self._new_id()] = self._row(key)
        history = History(tuple(self._rows.values()))
        before = 0
        for number in range(1, transactions + 1):
            changes: list[Change] = []
            for _ in range(self._random.randint(1, 4)):
                self._log += self._random.choice((1, 7, 400))
                begun = self._log
                for ordinal, change in enumerate(self._random.choice(self._statements)()):
                    self._apply(change)
                    changes.append(
                        replace(change, statement=begun, ordinal=ordinal, position=self._log, seq=len(changes) + 1)
                    )
                    self._log += 1
                self._check()
            self._log += self._random.choice((2, 2000))
            if changes:
                history.transactions.append(
                    [replace(one, tx=number, commit=self._log, commit_before=before) for one in changes]
                )
                before = self._log
        self._let_transactions_overlap(history)
        history.end = {row[0]: row for row in self._rows.values()}
        return history

    def _let_transactions_overlap(self, history: History) -> None:
        """Two transactions with different keys may have been written to the log in the other order: the second one
        before the first one, after all others."""
        behind = 0
        for number in range(len(history.transactions) - 1):
            one, other = history.transactions[number : number + 2]
            shift = max(change.position for change in other) - min(change.statement for change in one) + 1
            begins = min(change.statement for change in other) - shift
            if begins > behind and not _keys(one) & _keys(other):
                history.transactions[number + 1] = [
                    replace(change, position=change.position - shift, statement=change.statement - shift)
                    for change in other
                ]
            behind = max(behind, *(change.position for change in one))

    def _apply(self, change: Change) -> None:
        if change.new is None:
            del self._rows[change.row_id]
        else:
            self._rows[change.row_id] = change.new
        if not self._late_check:
            self._check()

    def _check(self) -> None:
        keys = [row[0] for row in self._rows.values()]
        assert len(set(keys)) == len(keys), "two rows have one key"

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _row(self, key: int) -> Row:
        pick = self._random.choice
        amount = pick((None, Decimal("0.00"), Decimal("-12.30"), Decimal("99999999.99")))
        at = pick((None, EPOCH + timedelta(microseconds=self._random.randrange(10**12))))
        return (key, pick(NAMES), amount, at, pick((None, "w" * self._random.randint(1, 9))))

    def _some(self) -> tuple[int, Row] | None:
        return self._random.choice(list(self._rows.items())) if self._rows else None

    def _free(self) -> list[int]:
        return [key for key in KEYS if key not in {row[0] for row in self._rows.values()}]

    def _changed(self, row: Row, key: int) -> Row:
        """With new values in some columns, rarely in the wide one."""
        new = self._row(key)
        keep = self._random.random() < 0.7
        return (*new[:4], row[4]) if keep else new

    def _insert(self) -> list[Change]:
        free = self._free()
        many = self._random.sample(free, min(len(free), self._random.randint(1, 3)))
        return [Change(None, self._row(key), self._new_id()) for key in many]

    def _update(self) -> list[Change]:
        if not (found := self._some()):
            return []
        row_id, row = found
        return [Change(row, self._changed(row, row[0]), row_id)]

    def _delete(self) -> list[Change]:
        found = self._some()
        return [Change(found[1], None, found[0])] if found else []

    def _revive(self) -> list[Change]:
        if not (found := self._some()):
            return []
        row_id, row = found
        return [Change(row, None, row_id), Change(None, self._row(row[0]), self._new_id())]

    def _move(self) -> list[Change]:
        free, found = self._free(), self._some()
        if not free or not found:
            return []
        row_id, row = found
        return [Change(row, self._changed(row, self._random.choice(free)), row_id)]

    def _shift(self) -> list[Change]:
        """``id = id + 1`` of a run of keys: the highest first, or, where keys are checked late, the lowest."""
        by_key = {row[0]: (row_id, row) for row_id, row in self._rows.items()}
        tops = [key for key in by_key if key + 1 not in by_key and key + 1 in KEYS]
        if not tops:
            return []
        at = self._random.choice(tops)
        run = []
        while at in by_key:
            row_id, row = by_key[at]
            run.append(Change(row, (at + 1, *row[1:]), row_id))
            at -= 1
        return run[::-1] if self._late_check else run

    def _swap(self) -> list[Change]:
        if len(self._rows) < 2:
            return []
        (one_id, one), (other_id, other) = self._random.sample(list(self._rows.items()), 2)
        return [Change(one, (other[0], *one[1:]), one_id), Change(other, (one[0], *other[1:]), other_id)]


def _keys(transaction: list[Change]) -> set[int]:
    return {row[0] for change in transaction for row in (change.old, change.new) if row}
