"""Many random histories of equal rows at once: after every window the copy holds each row as often as the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.changes import ChangeRecord
from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.steps import Outcome
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from tests.spark.hand_made import HandMade, Row

pytestmark = pytest.mark.jvm

SCHEMA = TableSchema(
    "public.t",
    (Column("h", LogicalType(Kind.INT32)), Column("v", LogicalType(Kind.TEXT)), Column("f", LogicalType(Kind.FLOAT64))),
)
HISTORIES, WINDOWS, LONGEST = 500, 3, 6
TEXTS = ("a", "", None)
NUMBERS = ("0.0", "-0.0", "nan", None)

Values = tuple[str | None, str | None]
"""Numbers as text: NaN equals itself there, and 0.0 is not -0.0."""


@dataclass
class Bag:
    """The rows of one history. ``live``: what the source holds; ``kept``: what the copy must hold, which is more where
    deletes are ignored. ``story`` is for a failing assertion."""

    number: int
    live: Counter[Values] = field(default_factory=Counter)
    kept: Counter[Values] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)

    def put(self, values: Values) -> None:
        self.live[values] += 1
        self.kept[values] += 1

    def take(self, values: Values, from_the_copy: bool) -> None:
        self.live[values] -= 1
        self.kept[values] -= from_the_copy

    def row(self, values: Values) -> Row:
        text, number = values
        return {"h": self.number, "v": text, "f": "NaN" if number == "nan" else number and float(number)}

    def rows(self) -> list[Row]:
        return [self.row(values) for values in self.live.elements()]


def drawn(random: Random) -> Values:
    return random.choice(TEXTS), random.choice(NUMBERS)


def statement(table: HandMade, bag: Bag, random: Random) -> list[ChangeRecord]:
    """Carry one statement out and tell it, sometimes twice."""
    present = sorted(bag.live.elements(), key=str)
    kind = random.choice(("insert", "again", "update", "update", "delete")) if present else "insert"
    old = random.choice(present) if present else None
    new = old if kind == "again" and old else drawn(random)
    bag.story.append(f"{kind} {old} {new}")
    if kind in ("insert", "again") or old is None:
        bag.put(new)
        record = table.insert(bag.row(new))
    elif kind == "update":
        bag.take(old, from_the_copy=True)
        bag.put(new)
        record = table.update(bag.row(new), before=bag.row(old))
    else:
        bag.take(old, from_the_copy=table.rule.on_delete is OnDelete.HARD)
        record = table.delete(bag.row(old))
    return [record] * random.choice((1, 1, 2))


def window(table: HandMade, bags: list[Bag], random: Random) -> list[ChangeRecord]:
    """A few statements of every history. Sometimes the table is truncated on the way, sometimes it is copied again:
    what was told before the copy is delivered all the same."""
    truncate_at, copy_at = (random.choice((None, None, random.randrange(HISTORIES))) for _ in range(2))
    records: list[ChangeRecord] = []
    for bag in bags:
        if bag.number == truncate_at:
            records.append(table.truncate())
            for one in bags:
                one.story.append("truncate")
                one.live.clear()
                if table.rule.on_delete is OnDelete.HARD:
                    one.kept.clear()
        if bag.number == copy_at:
            table.copy([row for one in bags for row in one.rows()])
            for one in bags:
                one.story.append("copy")
                one.kept = one.live.copy()
        for _ in range(random.randrange(LONGEST)):
            records += statement(table, bag, random)
    return records


def counted(rows: Iterable[tuple[object, ...]]) -> dict[object, Counter[Values]]:
    """The rows of the copy by history."""
    found: dict[object, Counter[Values]] = {}
    for number, text, value in rows:
        values = (None if text is None else str(text), None if value is None else str(value))
        found.setdefault(number, Counter())[values] += 1
    return found


@pytest.mark.parametrize(("seed", "on_delete"), [(1, OnDelete.HARD), (3, OnDelete.IGNORE)])
def test_after_every_window_each_row_is_there_as_often_as_at_the_source(
    spark: SparkSession, tmp_path: Path, seed: int, on_delete: OnDelete
) -> None:
    """Every batch is staged by two attempts and merged by both, the second time in vain."""
    print(f"seed {seed}")
    random = Random(seed)
    table = HandMade(spark, tmp_path, SCHEMA, on_delete)
    bags = [Bag(number) for number in range(HISTORIES)]
    for bag in bags:
        for _ in range(random.randrange(5)):
            bag.put(drawn(random))
    table.copy([row for bag in bags for row in bag.rows()])
    for _ in range(WINDOWS):
        table.land(window(table, bags, random))
        first, staged = table.staged()
        second, _ = table.staged()
        assert staged.outcome is Outcome.DONE, staged.problem
        result = table.merged(first)
        assert result.outcome is Outcome.DONE, result.problem
        assert {table.merged(again).outcome for again in (first, second)} == {Outcome.FENCED}
        held = counted(table.rows())
        for bag in bags:
            assert held.get(bag.number, Counter()) == +bag.kept, bag.story
