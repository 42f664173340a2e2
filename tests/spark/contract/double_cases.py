"""Cases in which two rows hold one key within a transaction: the changes, and the rows after it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.spark.scripted_table import Row, ScriptedTable

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
COLUMNS = (Column("id", INT, nullable=False), Column("v", TEXT))
DOUBLE = TableSchema("public.t", COLUMNS, ("id",), Regime.DOUBLE)


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@dataclass
class DoubleKeyChanges:
    """Makes the changes of a transaction: with whole images, or with row ids and keys."""

    table: ScriptedTable
    by_id: bool = False
    tx: str = ""

    def transaction(self, *changes: list[ChangeRecord]) -> list[ChangeRecord]:
        self.tx = uuid.uuid4().hex
        return [replace(one, tx_id=self.tx) for change in changes for one in change]

    def insert(self, new: Row, row_id: str) -> list[ChangeRecord]:
        return [self.table.insert(new, **self._row(row_id))]

    def update(self, old: Row, new: Row, row_id: str) -> list[ChangeRecord]:
        one = self.table.update(new, before=None if self.by_id else old)
        return [replace(one, **self._row(row_id))]

    def delete(self, old: Row, row_id: str) -> list[ChangeRecord]:
        return [self.table.delete({"id": old["id"]} if self.by_id else old, **self._row(row_id))]

    def move(self, old: Row, new: Row, row_id: str, complete: bool = True) -> list[ChangeRecord]:
        link = uuid.uuid4().hex
        image = {"id": old["id"]} if self.by_id else old
        one = self.table.delete(image, phase=DEPARTS, link_id=link, **self._row(row_id))
        [other] = self.insert(new, row_id)
        return [one, replace(other, phase=ARRIVES, link_id=link, after_complete=complete)]

    def _row(self, row_id: str) -> dict[str, str]:
        return {"row_id": row_id} if self.by_id else {}


@dataclass(frozen=True)
class DoubleCase:
    """``changes``: of one transaction. The keys of a case are counted from a base."""

    before: Sequence[tuple[int, str]]
    changes: Callable[[DoubleKeyChanges, int], list[list[ChangeRecord]]]
    after: Sequence[tuple[int, str]]


DOUBLE_CASES = {
    "4 a swap by one statement": DoubleCase(
        [(1, "x"), (2, "y")],
        lambda t, b: [t.move(row(b + 1, "x"), row(b + 2, "x"), "rx"), t.move(row(b + 2, "y"), row(b + 1, "y"), "ry")],
        [(1, "y"), (2, "x")],
    ),
    "4b id = id + 1 in ascending order": DoubleCase(
        [(1, "x"), (2, "y"), (3, "z")],
        lambda t, b: [t.move(row(b + n, v), row(b + n + 1, v), f"r{v}") for n, v in ((1, "x"), (2, "y"), (3, "z"))],
        [(2, "x"), (3, "y"), (4, "z")],
    ),
    "a new row comes before the old one goes": DoubleCase(
        [(1, "x")],
        lambda t, b: [t.insert(row(b + 1, "new"), "rn"), t.delete(row(b + 1, "x"), "rx")],
        [(1, "new")],
    ),
    "a row that only passes by": DoubleCase(
        [(1, "x"), (2, "y")],
        lambda t, b: [t.move(row(b + 2, "y"), row(b + 1, "y"), "ry"), t.move(row(b + 1, "y"), row(b + 5, "y"), "ry")],
        [(1, "x"), (5, "y")],
    ),
    "a row changes while another passes by": DoubleCase(
        [(1, "x")],
        lambda t, b: [
            t.insert(row(b + 1, "p"), "rp"),
            t.update(row(b + 1, "x"), row(b + 1, "x2"), "rx"),
            t.delete(row(b + 1, "p"), "rp"),
        ],
        [(1, "x2")],
    ),
    "a row comes and goes, and none is left": DoubleCase(
        [],
        lambda t, b: [
            t.insert(row(b + 1, "x"), "rx"),
            t.update(row(b + 1, "x"), row(b + 1, "x2"), "rx"),
            t.delete(row(b + 1, "x2"), "rx"),
        ],
        [],
    ),
    "both rows go": DoubleCase(
        [(1, "x")],
        lambda t, b: [
            t.insert(row(b + 1, "p"), "rp"),
            t.delete(row(b + 1, "x"), "rx"),
            t.delete(row(b + 1, "p"), "rp"),
        ],
        [],
    ),
    "equal copies change places": DoubleCase(
        [(1, "same"), (2, "same")],
        lambda t, b: [
            t.move(row(b + 1, "same"), row(b + 2, "same"), "r1"),
            t.move(row(b + 2, "same"), row(b + 1, "same"), "r2"),
            t.update(row(b + 1, "same"), row(b + 1, "other"), "r2"),
        ],
        [(1, "other"), (2, "same")],
    ),
}
