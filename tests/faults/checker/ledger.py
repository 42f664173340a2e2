"""The transactions of the source as the writer recorded them, and the rows of its tables after any commit.

A row is a tuple of texts, numbers and None, in the order of the columns. A change removes a row, adds one, or both; a
truncate removes all. The WAL position of the commit of each transaction is recorded separately.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field

Row = tuple[object, ...]
EVERY = 100
"""Transactions between two stored states."""


@dataclass(frozen=True)
class Shape:
    """A source table. ``key``: indices in the row; none for a table without key. ``soft``: deleted rows are flagged.
    ``target`` is the table of its copy; ``shared``: with rows of other source tables. ``at``: the name of the target,
    if that is not the default one."""

    table: str
    target: str
    columns: tuple[str, ...]
    key: tuple[int, ...]
    soft: bool = False
    shared: bool = False
    at: str = ""

    @property
    def copy(self) -> str:
        """The name of the copy in control records, index and staging."""
        return f"{self.table}@{self.at}" if self.at else self.table

    def key_of(self, row: Row) -> Row:
        return tuple(row[index] for index in self.key)


@dataclass(frozen=True)
class Change:
    """``before`` and ``after`` of one row; neither: the table was truncated."""

    table: str
    before: Row | None = None
    after: Row | None = None

    def records(self, shape: Shape) -> int:
        """The number of change records in the stream: two for a change of the key."""
        moved = self.before is not None and self.after is not None and bool(shape.key)
        return 2 if moved and shape.key_of(self.before) != shape.key_of(self.after) else 1  # type: ignore[arg-type]


@dataclass(frozen=True)
class Transaction:
    """``start`` and ``end`` of its commit record in the WAL."""

    xid: int
    start: int
    end: int
    changes: tuple[Change, ...]


@dataclass
class Ledger:
    """Transactions in the order of their commits. ``pending``: those without a known WAL position."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    pending: dict[int, tuple[Change, ...]] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    _kept: dict[int, dict[str, Counter[Row]]] = field(default_factory=lambda: {0: {}})

    def add(self, xid: int, changes: list[Change]) -> None:
        self.pending[xid] = tuple(changes)

    def record_commit(self, xid: int, start: int, end: int) -> None:
        """Records the WAL position of a commit; transactions of others than the writer change no rows."""
        if xid in self.pending:
            self.transactions.append(Transaction(xid, start, end, self.pending.pop(xid)))

    def upto(self, end: int) -> int:
        """The number of transactions that end at or before this position."""
        return bisect_right(self.transactions, end, key=lambda one: one.end)

    def before(self, point: int) -> int:
        """The number of transactions that a snapshot at this position contains."""
        return bisect_left(self.transactions, point, key=lambda one: one.start)

    def within(self, lo: int, hi: int) -> list[Transaction]:
        return self.transactions[self.before(lo) : self.upto(hi)]

    def rows(self, table: str, count: int) -> Counter[Row]:
        """The rows of a table after ``count`` transactions."""
        return self._state(count).get(table, Counter())

    def ever(self, table: str, count: int) -> set[Row]:
        """Every row that a table had up to then."""
        changes = (change for one in self.transactions[:count] for change in one.changes if change.table == table)
        return {row for change in changes for row in (change.before, change.after) if row is not None}

    def _state(self, count: int) -> dict[str, Counter[Row]]:
        nearest = max(kept for kept in self._kept if kept <= count)
        state = {table: Counter(rows) for table, rows in self._kept[nearest].items()}
        for number, transaction in enumerate(self.transactions[nearest:count], nearest + 1):
            for change in transaction.changes:
                rows = state.setdefault(change.table, Counter())
                if change.before is None and change.after is None:
                    rows.clear()
                if change.before is not None:
                    rows[change.before] -= 1
                    rows += Counter()  # removes counts of zero
                if change.after is not None:
                    rows[change.after] += 1
            if number % EVERY == 0:
                self._kept[number] = {table: Counter(rows) for table, rows in state.items()}
        return state
