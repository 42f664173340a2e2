"""A merge as data: the clauses that a target renders in its own SQL.

A staged row has the table's columns, the order key of the last change of its key, and ``_cdc_op``:

| ``_cdc_op`` | keyed table | keyless table |
|---|---|---|
| U | upsert; if ``_cdc_known`` is not NULL, the row must exist and keeps its values in all other columns | |
| P | upsert of the columns in ``_cdc_known``; in a new row the other columns are NULL | |
| D | delete; ``_cdc_known`` NULL: all last values are known | delete all rows equal to it |
| I | | insert one row |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.core.table.schema import Column, TableSchema

OP, KNOWN = "_cdc_op", "_cdc_known"
LIVE, PUT, GONE, COPY = "U", "P", "D", "I"

ORDER, DELETED = "_cdc_order", "_cdc_deleted"
"""Columns of a target table: the order key of the row's last change; whether the row is marked as deleted."""

TARGET_ALIAS, STAGED_ALIAS = "_cdc_t", "_cdc_s"
"""Aliases of the table and of its staged rows in the SQL of a merge. No column has such a name, which would hide the
alias."""

NO_ROW, AMBIGUOUS_KEY, CONFLICTING_CHANGES = "CDC_NO_ROW", "CDC_TWO_HOLDERS", "CDC_CONFLICTING_CHANGES"
"""Markers in the error of a Spark query, by which the job recognises it: a partial change without a row; a key that two
rows may have; two different changes of a row with the same order key."""


class RowMatch(StrEnum):
    """The rows that a clause applies to: a staged row with a target row, or one of them alone."""

    BOTH = "matched"
    STAGED_ONLY = "not matched"
    TARGET_ONLY = "not matched by source"


class Action(StrEnum):
    """INSERT_DELETED inserts a row that is marked as deleted. MARK_DELETED marks an existing row. FILL sets added
    columns to their initial value. REFUSE fails the whole merge: a row that must exist is not in the target."""

    INSERT = "insert"
    INSERT_DELETED = "insert deleted"
    UPDATE = "update"
    DELETE = "delete"
    MARK_DELETED = "mark deleted"
    FILL = "fill"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Clause:
    """``ops``: values of the staged row's ``_cdc_op``; empty: all. ``partial_only``: only rows with ``_cdc_known``;
    ``whole_only``: only rows without. ``flagged_only``: only target rows marked as deleted. ``guarded``: only if the
    staged row is newer (row guard)."""

    rows: RowMatch
    action: Action
    ops: tuple[str, ...] = ()
    partial_only: bool = False
    whole_only: bool = False
    flagged_only: bool = False
    guarded: bool = False


@dataclass(frozen=True)
class MergePlan:
    """``truncated_at``: the order key of a late truncate: rows of later changes stay; empty: no row is newer than the
    truncate. ``added``: columns new to the target. ``ranges``: cover the bounded key column of all staged rows, as SQL
    literals of the target; empty: unlimited. ``not_older``: equal order keys pass the row guard, too, and rows
    without one, which another writer wrote (repair). ``own``: the rows that the merge may change; None: all."""

    schema: TableSchema
    on_delete: OnDelete
    partial: bool = False
    truncated: bool = False
    not_older: bool = False
    added: tuple[Column, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    own: OwnRows | None = None
    truncated_at: str = ""

    @property
    def soft(self) -> bool:
        return self.on_delete is OnDelete.SOFT

    @property
    def inserts_deleted(self) -> bool:
        """A deleted row that the target lost is inserted and marked as deleted. Only for repairs: in the stream, a
        deleted row that the target does not have was inserted and deleted within the batch."""
        return self.not_older and self.soft and self.partial

    @property
    def changes_unmatched_rows(self) -> bool:
        """Whether target rows without a staged row change, too."""
        return any(clause.rows is RowMatch.TARGET_ONLY for clause in self.clauses())

    def clauses(self) -> tuple[Clause, ...]:
        """In order of precedence: the first applicable clause for a pair of rows is executed."""
        return tuple(self._keyed() if self.schema.key else self._keyless())

    def _keyed(self) -> Iterable[Clause]:
        if self.partial and self.soft:
            yield Clause(RowMatch.BOTH, Action.REFUSE, (LIVE,), partial_only=True, flagged_only=True, guarded=True)
        yield Clause(RowMatch.BOTH, Action.UPDATE, (LIVE, PUT), guarded=True)
        if self.on_delete is not OnDelete.IGNORE:
            yield Clause(RowMatch.BOTH, Action.MARK_DELETED if self.soft else Action.DELETE, (GONE,), guarded=True)
        if self.partial:
            yield Clause(RowMatch.STAGED_ONLY, Action.REFUSE, (LIVE,), partial_only=True)
        yield Clause(RowMatch.STAGED_ONLY, Action.INSERT, (LIVE, PUT))
        if self.inserts_deleted:
            yield Clause(RowMatch.STAGED_ONLY, Action.INSERT_DELETED, (GONE,), whole_only=True)
        yield from self._rest()

    def _keyless(self) -> Iterable[Clause]:
        yield Clause(RowMatch.BOTH, Action.DELETE)
        yield Clause(RowMatch.STAGED_ONLY, Action.INSERT, (COPY,))
        yield from self._rest()

    def _rest(self) -> Iterable[Clause]:
        if self.truncated:
            yield Clause(RowMatch.TARGET_ONLY, Action.MARK_DELETED if self.soft else Action.DELETE)
        if self.truncated and not self.truncated_at:
            return
        if any(column.initial is not None for column in self.added):
            yield Clause(RowMatch.TARGET_ONLY, Action.FILL)


@dataclass(frozen=True)
class SchemaDelta:
    """``missing``: columns that the target does not have. ``added``: all new columns, as input of the merge."""

    missing: tuple[Column, ...]
    added: tuple[Column, ...]


def schema_delta(
    added: Sequence[Column], present: Iterable[str], column_id: Callable[[str], str] = str.lower
) -> SchemaDelta:
    """``column_id``: equal for two names that only one column of the target can have.

    A new column that the target already has may contain values from before it was dropped at the source, or come
    from an interrupted attempt: its values are reset to the initial value, NULL by default."""
    existing = set(map(column_id, present))
    missing = tuple(column for column in added if column_id(column.name) not in existing)
    merged = (column if column in missing else replace(column, initial=column.initial or "null") for column in added)
    return SchemaDelta(missing, tuple(merged))


Range = tuple[Any, Any]


def merge_ranges(ranges: Sequence[Range], limit: int) -> tuple[Range, ...]:
    """Merge ranges until at most ``limit`` remain, closing the smallest gaps first. Values must support subtraction
    (numbers, dates, times)."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    if len(joined) <= limit:
        return tuple(joined)
    gaps = sorted(range(1, len(joined)), key=lambda index: joined[index][0] - joined[index - 1][1], reverse=True)
    cuts = [0, *sorted(gaps[: limit - 1]), len(joined)]
    return tuple((joined[start][0], joined[end - 1][1]) for start, end in pairwise(cuts))
