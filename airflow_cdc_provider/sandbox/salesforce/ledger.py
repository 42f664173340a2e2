"""Every committed transaction in order, and the state of every object after each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.objects import ARCHIVED, DELETED, Row
from airflow_cdc_provider.sandbox.salesforce.storage import Store


@dataclass(frozen=True, slots=True)
class RowChange:
    """``row`` is the record after the commit, None if it is purged."""

    object: str
    id: str
    row: Row | None


@dataclass(frozen=True)
class Commit:
    """``at_ms`` is the org's time of the commit, not of its statements. A load has no transaction key."""

    number: int
    transaction_key: str
    at_ms: int
    changes: Sequence[RowChange]


@dataclass
class Ledger:
    """Commits are numbered 1, 2, 3, …. Values are as stored: timestamps and dates are ISO text."""

    store: Store
    commits: list[Commit] = field(default_factory=list)

    @property
    def last(self) -> int:
        return len(self.commits)

    def append(self, key: str, at_ms: int, changes: Sequence[RowChange]) -> None:
        self.commits.append(Commit(self.last + 1, key, at_ms, changes))

    def at(self, ms: int) -> int:
        """The number of the last commit at or before a time of the org's clock."""
        return next((commit.number for commit in reversed(self.commits) if commit.at_ms <= ms), 0)

    def rows(self, name: str, number: int | None = None, everything: bool = False) -> dict[str, Row]:
        """By id, after commit ``number``, by default the last one. ``everything``: with deleted and archived rows."""
        with self.store.lock:
            if number is None or number >= self.last:
                rows = dict(self.store.table(name).rows)
            else:
                rows = self._replayed(name, number)
        if everything:
            return rows
        return {key: row for key, row in rows.items() if not row[DELETED] and not row[ARCHIVED]}

    def state(
        self, name: str, number: int | None = None, everything: bool = False, now: str = "1970-01-01T00:00:00.000Z"
    ) -> dict[str, dict[str, Any]]:
        """The rows as values by field name. ``now`` is for formulas that depend on the time."""
        object_type = self.store.table(name).type
        return {key: object_type.values(row, now) for key, row in self.rows(name, number, everything).items()}

    def _replayed(self, name: str, number: int) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for commit in self.commits[:number]:
            for change in commit.changes:
                if change.object == name:
                    if change.row is None:
                        rows.pop(change.id, None)
                    else:
                        rows[change.id] = change.row
        return rows
