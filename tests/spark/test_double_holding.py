"""Keys that two rows hold within a transaction: at its end the right row holds each."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.changes import ARRIVES, DEPARTS, ChangeRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, Regime, TableSchema
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
COLUMNS = (Column("id", INT, nullable=False), Column("v", TEXT))
SCHEMA = TableSchema("public.t", COLUMNS, ("id",), Regime.DOUBLE)


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@dataclass
class Told:
    """How a transaction is told: by whole images, or by row ids and what the key is."""

    table: HandMade
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
        told = {"id": old["id"]} if self.by_id else old
        one = self.table.delete(told, phase=DEPARTS, link_id=link, **self._row(row_id))
        [other] = self.insert(new, row_id)
        return [one, replace(other, phase=ARRIVES, link_id=link, after_complete=complete)]

    def _row(self, row_id: str) -> dict[str, str]:
        return {"row_id": row_id} if self.by_id else {}


Case = tuple[list[Row], Callable[[Told, int], list[list[ChangeRecord]]], list[tuple[int, str]]]

CASES: dict[str, Case] = {
    "4 a swap by one statement": (
        [row(1, "x"), row(2, "y")],
        lambda t, b: [t.move(row(b + 1, "x"), row(b + 2, "x"), "rx"), t.move(row(b + 2, "y"), row(b + 1, "y"), "ry")],
        [(1, "y"), (2, "x")],
    ),
    "4b id = id + 1 in ascending order": (
        [row(1, "x"), row(2, "y"), row(3, "z")],
        lambda t, b: [t.move(row(b + n, v), row(b + n + 1, v), f"r{v}") for n, v in ((1, "x"), (2, "y"), (3, "z"))],
        [(2, "x"), (3, "y"), (4, "z")],
    ),
    "a new row comes before the old one goes": (
        [row(1, "x")],
        lambda t, b: [t.insert(row(b + 1, "new"), "rn"), t.delete(row(b + 1, "x"), "rx")],
        [(1, "new")],
    ),
    "a row that only passes by": (
        [row(1, "x"), row(2, "y")],
        lambda t, b: [t.move(row(b + 2, "y"), row(b + 1, "y"), "ry"), t.move(row(b + 1, "y"), row(b + 5, "y"), "ry")],
        [(1, "x"), (5, "y")],
    ),
    "a row changes while another passes by": (
        [row(1, "x")],
        lambda t, b: [
            t.insert(row(b + 1, "p"), "rp"),
            t.update(row(b + 1, "x"), row(b + 1, "x2"), "rx"),
            t.delete(row(b + 1, "p"), "rp"),
        ],
        [(1, "x2")],
    ),
    "a row comes and goes, and nobody stays": (
        [],
        lambda t, b: [
            t.insert(row(b + 1, "x"), "rx"),
            t.update(row(b + 1, "x"), row(b + 1, "x2"), "rx"),
            t.delete(row(b + 1, "x2"), "rx"),
        ],
        [],
    ),
    "both rows go": (
        [row(1, "x")],
        lambda t, b: [
            t.insert(row(b + 1, "p"), "rp"),
            t.delete(row(b + 1, "x"), "rx"),
            t.delete(row(b + 1, "p"), "rp"),
        ],
        [],
    ),
    "equal copies change places": (
        [row(1, "same"), row(2, "same")],
        lambda t, b: [
            t.move(row(b + 1, "same"), row(b + 2, "same"), "r1"),
            t.move(row(b + 2, "same"), row(b + 1, "same"), "r2"),
            t.update(row(b + 1, "same"), row(b + 1, "other"), "r2"),
        ],
        [(1, "other"), (2, "same")],
    ),
}
BLOCK = 10


@pytest.mark.parametrize("by_id", [False, True], ids=["by images", "by row ids"])
def test_the_row_that_stays_holds_the_key(spark: SparkSession, tmp_path: Path, by_id: bool) -> None:
    """Every case has keys of its own, so that one batch carries them all."""
    table = HandMade(spark, tmp_path, SCHEMA)
    based = [(number * BLOCK, *case) for number, case in enumerate(CASES.values())]
    table.copy([row(base + one["id"], one["v"]) for base, before, _, _ in based for one in before])
    told = Told(table, by_id)
    result = table.apply([told.transaction(*changes(told, base)) for base, _, changes, _ in based])
    assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    for name, (base, _, _, after) in zip(CASES, based, strict=True):
        assert [(key - base, v) for key, v in found if base <= key < base + BLOCK] == after, name


def test_two_rows_that_both_stay_stop_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """The key that the definition names is none."""
    table = HandMade(spark, tmp_path, SCHEMA)
    table.copy([row(1, "x")])
    told = Told(table)
    changes = [told.insert(row(1, "p"), ""), told.insert(row(1, "q"), ""), told.delete(row(1, "x"), "")]
    result = table.apply([told.transaction(*changes)])
    assert result.outcome is Outcome.BLOCKED
    assert result.problem is not None and result.problem.code == "TGT036"
    assert table.rows() == [(1, "x")]


def test_a_departure_that_takes_unknown_columns_along_stops_the_table(spark: SparkSession, tmp_path: Path) -> None:
    wide = replace(SCHEMA, columns=(*COLUMNS, Column("w", TEXT)))
    table = HandMade(spark, tmp_path, wide)
    table.copy([row(1, "x") | {"w": "W"}, row(2, "y") | {"w": "V"}])
    told = Told(table, by_id=True)
    changes = [
        told.move(row(1, "x"), row(2, "x"), "rx", complete=False),
        told.move(row(2, "y"), row(1, "y"), "ry", complete=False),
    ]
    result = table.apply([told.transaction(*changes)])
    assert result.problem is not None and result.problem.code == "TGT036"


HISTORIES, KEYS, TRANSACTIONS = 300, 4, 4


@pytest.mark.parametrize("on_delete", [OnDelete.HARD, OnDelete.SOFT])
def test_random_transactions_checked_at_their_end(spark: SparkSession, tmp_path: Path, on_delete: OnDelete) -> None:
    """Every history has keys of its own. Within a transaction its rows go anywhere; at its end no two share a key."""
    random = Random(seed := uuid.uuid4().hex)
    print(f"seed {seed}")
    table = HandMade(spark, tmp_path, SCHEMA, on_delete)
    told = Told(table)
    held = [_start(random, number * KEYS) for number in range(HISTORIES)]
    table.copy([one for rows in held for one in rows])
    for _ in range(2):
        records: list[ChangeRecord | list[ChangeRecord]] = []
        for number, rows in enumerate(held):
            for _ in range(random.randrange(TRANSACTIONS)):
                records.append(told.transaction(*_transaction(random, told, rows, number * KEYS)))
        result = table.apply(records)
        assert result.outcome is Outcome.DONE, result.problem
        soft = on_delete is OnDelete.SOFT
        found = [one[:2] for one in table.rows(*(["_cdc_deleted"] if soft else [])) if not soft or not one[2]]
        assert sorted(found) == sorted((one["id"], one["v"]) for rows in held for one in rows)


def _start(random: Random, base: int) -> list[Row]:
    return [row(base + key, random.choice("ab")) for key in range(KEYS) if random.random() < 0.6]


def _transaction(random: Random, told: Told, rows: list[Row], base: int) -> list[list[ChangeRecord]]:
    """Changes ``rows`` in place. Few values, so that equal copies meet."""
    changes = []
    for _ in range(random.randrange(6)):
        key, value = base + random.randrange(KEYS), random.choice("ab")
        if not rows or random.random() < 0.2:
            rows.append(row(key, value))
            changes.append(told.insert(rows[-1], ""))
            continue
        old = rows.pop(random.randrange(len(rows)))
        if random.random() < 0.2:
            changes.append(told.delete(old, ""))
            continue
        new = row(key, random.choice((value, old["v"])))
        rows.append(new)
        changes.append(told.update(old, new, "") if new["id"] == old["id"] else told.move(old, new, ""))
    while doubles := [one for one in rows if sum(other["id"] == one["id"] for other in rows) > 1]:
        gone = random.choice(doubles)
        rows.remove(gone)
        changes.append(told.delete(gone, ""))
    return changes
