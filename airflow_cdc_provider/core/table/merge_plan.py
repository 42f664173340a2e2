"""A merge as data: which row meets which, and what happens then. Targets render it in their own SQL.

A staged row carries the table's columns, the order key of the last change of its key, and ``_cdc_op``:

| ``_cdc_op`` | keyed table | keyless table |
|---|---|---|
| U | the row lives; ``_cdc_known`` NULL: all columns known; else the row must exist and keeps what is not known | |
| P | the row lives, ``_cdc_known`` says which columns are known; where no row exists the others are NULL | |
| D | the row is gone; ``_cdc_known`` NULL: its last values are all known | all rows equal to it go |
| I | | one more row like this |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, TableSchema

OP, KNOWN = "_cdc_op", "_cdc_known"
LIVE, PUT, GONE, COPY = "U", "P", "D", "I"

ORDER, DELETED = "_cdc_order", "_cdc_deleted"
"""Columns of a target table: the order key of the row's last change; whether the row is marked deleted."""

NO_ROW, AMBIGUOUS_KEY, CONFLICTING_CHANGES = "CDC_NO_ROW", "CDC_TWO_HOLDERS", "CDC_CONFLICTING_CHANGES"
"""What a job dies of where a partial change meets no row, where nobody can tell which of two rows holds a key, where
two changes of a row stand at one place and differ; it looks for these words."""


class RowMatch(StrEnum):
    """Which pair of rows a clause is for: both sides, a staged row alone, a target row alone."""

    BOTH = "matched"
    STAGED_ONLY = "not matched"
    TARGET_ONLY = "not matched by source"


class Action(StrEnum):
    """BURY inserts a row that is marked deleted. FLAG marks the row deleted. FILL gives added columns their initial
    value. REFUSE fails the whole merge: the log says that a row exists which the target does not hold."""

    INSERT = "insert"
    BURY = "bury"
    UPDATE = "update"
    DELETE = "delete"
    FLAG = "flag"
    FILL = "fill"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Clause:
    """``ops``: the staged row's ``_cdc_op`` (all where empty). ``partial_only``: rows with ``_cdc_known`` only;
    ``whole_only``: rows without. ``flagged_only``: target rows marked deleted only. ``guarded``: only where the staged
    row is newer."""

    rows: RowMatch
    action: Action
    ops: tuple[str, ...] = ()
    partial_only: bool = False
    whole_only: bool = False
    flagged_only: bool = False
    guarded: bool = False


@dataclass(frozen=True)
class MergePlan:
    """``added`` are columns new to the target. ``ranges`` cover the leading key column of all staged rows, as SQL
    literals of the target; none means anywhere. ``not_older`` lets equal order keys pass the guard too (repair)."""

    schema: TableSchema
    on_delete: OnDelete
    partial: bool = False
    truncated: bool = False
    not_older: bool = False
    added: tuple[Column, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()

    @property
    def soft(self) -> bool:
        return self.on_delete is OnDelete.SOFT

    @property
    def buries(self) -> bool:
        """A deleted row that the target lost comes back marked deleted. Only a repair looks for such rows: in the
        stream a row that is gone and was never there was born and died within the batch."""
        return self.not_older and self.soft and self.partial

    @property
    def changes_unmatched_rows(self) -> bool:
        """Rows that no staged row meets change too."""
        return any(clause.rows is RowMatch.TARGET_ONLY for clause in self.clauses())

    def clauses(self) -> tuple[Clause, ...]:
        """In the order in which they are tried; of those for one meeting the first that applies counts."""
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
        if self.buries:
            yield Clause(RowMatch.STAGED_ONLY, Action.INSERT_DELETED, (GONE,), whole_only=True)
        yield from self._rest()

    def _keyless(self) -> Iterable[Clause]:
        yield Clause(RowMatch.BOTH, Action.DELETE)
        yield Clause(RowMatch.STAGED_ONLY, Action.INSERT, (COPY,))
        yield from self._rest()

    def _rest(self) -> Iterable[Clause]:
        if self.truncated:
            yield Clause(RowMatch.TARGET_ONLY, Action.MARK_DELETED if self.soft else Action.DELETE)
        elif any(column.initial is not None for column in self.added):
            yield Clause(RowMatch.TARGET_ONLY, Action.FILL)


@dataclass(frozen=True)
class SchemaDelta:
    """``missing``: columns that the target lacks. ``added``: all columns new to it, as its merge must take them."""

    missing: tuple[Column, ...]
    added: tuple[Column, ...]


def schema_delta(added: Sequence[Column], present: Iterable[str]) -> SchemaDelta:
    """A column that is there already may hold values from before it was dropped at the source, or be ours from an
    attempt that died: its old values give way to the initial one, here NULL."""
    there = {name.lower() for name in present}
    missing = tuple(column for column in added if column.name.lower() not in there)
    taken = (column if column in missing else replace(column, initial=column.initial or "null") for column in added)
    return SchemaDelta(missing, tuple(taken))


Range = tuple[Any, Any]


def merge_ranges(ranges: Sequence[Range], limit: int) -> tuple[Range, ...]:
    """At most ``limit`` ranges that hold all the given ones: the smallest gaps between them are closed first. Values
    must subtract (numbers, dates, times)."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    if len(joined) <= limit:
        return tuple(joined)
    gaps = sorted(range(1, len(joined)), key=lambda at: joined[at][0] - joined[at - 1][1], reverse=True)
    cuts = [0, *sorted(gaps[: limit - 1]), len(joined)]
    return tuple((joined[start][0], joined[end - 1][1]) for start, end in pairwise(cuts))
