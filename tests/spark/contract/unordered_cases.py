"""Changes that arrive out of order, window by window, and the rows after them: the newest change of each key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.spark.scripted_table import Row, ScriptedTable

COLUMNS = (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT)))
UNORDERED = TableSchema("public.t", COLUMNS, ("id",), Regime.UNORDERED)

WINDOWS = 2
Windows = Sequence[Sequence[ChangeRecord]]


@dataclass(frozen=True)
class UnorderedChanges:
    """Makes changes of keyed rows; one that is made first is older. The keys of a case are counted from ``base``."""

    table: ScriptedTable
    base: int

    def row(self, key: int, value: str) -> Row:
        return {"id": self.base + key, "v": value}

    def insert(self, key: int, value: str) -> ChangeRecord:
        return self.table.insert(self.row(key, value))

    def update(self, key: int, value: str) -> ChangeRecord:
        return self.table.update(self.row(key, value))

    def delete(self, key: int, value: str) -> ChangeRecord:
        return self.table.delete(self.row(key, value))

    def read(self, key: int, value: str) -> ChangeRecord:
        """A row of a backfill, ordered by the start of its read."""
        row = self.row(key, value)
        return self.table.record("read", key=self.table.key(row), after=canonical(row), after_complete=True)


@dataclass(frozen=True)
class UnorderedCase:
    before: Sequence[tuple[int, str]]
    windows: Callable[[UnorderedChanges], Windows]
    after: Sequence[tuple[int, str]]


def late_update_of_a_deleted_row(s: UnorderedChanges) -> Windows:
    older, gone = s.update(0, "older"), s.delete(0, "a")
    return [gone], [older]


def backfill_behind_a_change(s: UnorderedChanges) -> Windows:
    read, changed = s.read(0, "a"), s.update(0, "b")
    return [changed], [read]


def backfill_behind_a_delete(s: UnorderedChanges) -> Windows:
    read, gone = s.read(0, "a"), s.delete(0, "a")
    return [gone], [read]


def update_from_one_partition_before_its_insert_from_another(s: UnorderedChanges) -> Windows:
    born, changed = s.insert(0, "a"), s.update(0, "b")
    return [changed], [born]


def both_in_one_window(s: UnorderedChanges) -> Windows:
    born, changed, gone, again = s.insert(0, "a"), s.update(0, "b"), s.delete(0, "b"), s.insert(0, "c")
    return [again, born, gone, changed], []


def everything_twice(s: UnorderedChanges) -> Windows:
    changed, gone, born = s.update(0, "b"), s.delete(0, "b"), s.insert(1, "c")
    return [gone, born, changed], [born, changed, gone]


def new_life_after_the_delete(s: UnorderedChanges) -> Windows:
    gone, again = s.delete(0, "a"), s.insert(0, "again")
    return [gone], [again]


UNORDERED_CASES = {
    "11 an update comes after the delete that followed it": UnorderedCase([(0, "a")], late_update_of_a_deleted_row, []),
    "14 a backfilled row is older than a change": UnorderedCase([], backfill_behind_a_change, [(0, "b")]),
    "14b a backfilled row was deleted since": UnorderedCase([], backfill_behind_a_delete, []),
    "18 everything delivered twice": UnorderedCase([(0, "a")], everything_twice, [(1, "c")]),
    "19 an update overtakes its insert": UnorderedCase(
        [], update_from_one_partition_before_its_insert_from_another, [(0, "b")]
    ),
    "the wrong way round in one window": UnorderedCase([], both_in_one_window, [(0, "c")]),
    "a new life after a delete": UnorderedCase([(0, "a")], new_life_after_the_delete, [(0, "again")]),
}
