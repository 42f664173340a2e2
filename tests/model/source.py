"""The reference: the rows of a source after each transaction. Plain tuples and counters, no code of the product.

A row is a tuple; the first ``key`` columns identify it, none where ``key`` is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]
Rows: TypeAlias = "Counter[Row]"


@dataclass(frozen=True)
class Change:
    """``old`` was removed, ``new`` was added; neither: the table was truncated. ``op`` and ``known`` (the columns in
    the change record, all where None) serve the writer of change records; the source itself has every column."""

    op: str
    old: Row | None = None
    new: Row | None = None
    known: frozenset[int] | None = None


@dataclass
class Source:
    """Positions count transactions: at position 0 the table holds ``start``."""

    key: int
    start: tuple[Row, ...] = ()
    transactions: list[tuple[Change, ...]] = field(default_factory=list)

    def commit(self, changes: Iterable[Change]) -> int:
        self.transactions.append(tuple(changes))
        return len(self.transactions)

    def state_at(self, position: int) -> Rows:
        """Every row with its count."""
        rows = Counter(self.start)
        for change in self._changes(0, position):
            _apply(rows, change)
        keys = [row[: self.key] for row in (+rows).elements()]
        assert not self.key or len(set(keys)) == len(keys), f"two rows have one key at position {position}"
        return +rows

    def kept(self, before: Rows, since: int, position: int) -> Rows:
        """The rows of a copy that never deletes at ``position``, where it had ``before`` at ``since``."""
        if self.key:
            by_key = {row[: self.key]: row for row in before}
            by_key |= {one.new[: self.key]: one.new for one in self._changes(since, position) if one.new is not None}
            return Counter(by_key.values())
        rows = Counter(before)
        for change in self._changes(since, position):
            if change.new is not None:
                _apply(rows, change)
        return +rows

    def keys_between(self, since: int, position: int) -> frozenset[Row]:
        """Every key that a row had at any moment between the two positions."""
        rows = (*self.state_at(since), *(change.new for change in self._changes(since, position) if change.new))
        return frozenset(row[: self.key] for row in rows)

    def _changes(self, since: int, position: int) -> Iterator[Change]:
        return (change for transaction in self.transactions[since:position] for change in transaction)


def _apply(rows: Rows, change: Change) -> None:
    if change.old is None and change.new is None:
        rows.clear()
    if change.old is not None:
        assert rows[change.old] > 0, f"no such row: {change}"
        rows[change.old] -= 1
    if change.new is not None:
        rows[change.new] += 1
