"""What a staged row does to the row of the target with its key: the clauses of a merge plan, decided one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.table.merge_plan import Action, Clause, MergePlan, RowMatch


class Verb(StrEnum):
    """Kinds of mutations. UPDATE keeps the columns that it does not name, REPLACE sets them to NULL. UPSERT inserts a
    row or updates it."""

    INSERT = "insert"
    UPDATE = "update"
    UPSERT = "insert_or_update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Staged:
    """``known``: the columns whose values are known; None: all."""

    op: str
    order: str
    known: frozenset[str] | None = None


@dataclass(frozen=True)
class Found:
    """The row of the target. ``deleted``: it is marked as deleted."""

    order: str
    deleted: bool = False


@dataclass(frozen=True)
class Change:
    """``columns``: of the source, besides the key; None: all. ``deleted``: the mark that is written."""

    verb: Verb
    columns: frozenset[str] | None = frozenset()
    deleted: bool = False


REFUSED = Change(Verb.DELETE, None)
"""The target lacks a row that must exist."""


@dataclass(frozen=True)
class Counts:
    """Rows by effect."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)

    def __mul__(self, rows: int) -> Counts:
        return Counts(self.inserted * rows, self.updated * rows, self.deleted * rows)

    def rows_after(self, rows: int | None) -> int | None:
        """The number of rows of a table that had ``rows``; None if that is unknown."""
        return None if rows is None else rows + self.inserted - self.deleted


@dataclass(frozen=True)
class KeyedRules:
    plan: MergePlan
    clauses: Sequence[Clause]

    @classmethod
    def of(cls, plan: MergePlan) -> KeyedRules:
        return cls(plan, [clause for clause in plan.clauses() if clause.rows is not RowMatch.TARGET_ONLY])

    def change(self, staged: Staged, found: Found | None) -> Change | None:
        """None if nothing changes; REFUSED if the whole merge must be rejected."""
        clause = next((clause for clause in self.clauses if self._applies(clause, staged, found)), None)
        if clause is None:
            return None
        match clause.action:
            case Action.REFUSE:
                return REFUSED
            case Action.DELETE:
                return Change(Verb.DELETE)
            case Action.MARK_DELETED:
                return Change(Verb.UPDATE, staged.known if self.plan.partial else frozenset(), deleted=True)
            case Action.INSERT:
                return Change(Verb.INSERT, staged.known)
            case Action.INSERT_DELETED:
                return Change(Verb.INSERT, None, deleted=True)
            case Action.UPDATE if staged.known is None:
                return Change(Verb.UPSERT, None)
            case Action.UPDATE:
                assert found is not None
                return Change(Verb.REPLACE if found.deleted else Verb.UPDATE, staged.known)
            case Action.FILL:
                raise ValueError("rows are filled before the clauses")

    def _applies(self, clause: Clause, staged: Staged, found: Found | None) -> bool:
        if (clause.rows is RowMatch.BOTH) != (found is not None):
            return False
        if staged.op not in clause.ops:
            return False
        if (clause.partial_only and staged.known is None) or (clause.whole_only and staged.known is not None):
            return False
        if found is None:
            return True
        if clause.flagged_only and not found.deleted:
            return False
        return not clause.guarded or staged.order > found.order or (self.plan.not_older and staged.order == found.order)


def counts_of(change: Change) -> Counts:
    match change.verb:
        case Verb.INSERT:
            return Counts(inserted=1)
        case Verb.DELETE:
            return Counts(deleted=1)
        case _:
            return Counts(updated=1)
