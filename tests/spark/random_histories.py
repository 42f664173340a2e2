"""Random histories of small tables, and what each of them leaves: a model that shares nothing with the product.

A history is a list of statements on a dict of rows. Every statement is told as a source tells it: with whole or partial
images, key changes as two linked halves, some records twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from airflow_cdc_provider.core.changes import ChangeRecord
from tests.spark.hand_made import HandMade, Row

KEYS = range(5)
KINDS = ("insert", "update", "update", "delete", "move", "move")
VALUES = ("a", "b", None)
WIDE = ("x" * 9, "y" * 9, None)

Values = tuple[str | None, str | None]


@dataclass(frozen=True)
class Statement:
    """``kind``: one of KINDS. ``wide`` False: the wide column stays and is not sent. ``cut``: a window ends behind the
    statement. ``twice``: its records are delivered again at once."""

    kind: str
    key: int
    to: int
    value: str | None
    wide_value: str | None
    wide: bool
    cut: bool
    twice: bool


@dataclass(frozen=True)
class History:
    rows: dict[int, Values]
    statements: tuple[Statement, ...]


def history(random: Random) -> History:
    rows = {key: (random.choice(VALUES), random.choice(WIDE)) for key in KEYS if random.random() < 0.5}
    return History(rows, tuple(_statement(random) for _ in range(random.randint(1, 14))))


def _statement(random: Random) -> Statement:
    return Statement(
        random.choice(KINDS),
        random.choice(KEYS),
        random.choice(KEYS),
        random.choice(VALUES),
        random.choice(WIDE),
        wide=random.random() < 0.5,
        cut=random.random() < 0.2,
        twice=random.random() < 0.2,
    )


@dataclass
class Source:
    """One history's share of a table: keys ``base`` to ``base + 4``. ``rows``: key -> (value, wide)."""

    table: HandMade
    base: int
    rows: dict[int, Values]

    def run(self, statement: Statement) -> list[ChangeRecord]:
        """Carry the statement out, if it can be, and tell it."""
        records = self._run(statement)
        return records * 2 if statement.twice else records

    def _run(self, one: Statement) -> list[ChangeRecord]:
        here, there = one.key in self.rows, one.to in self.rows
        match one.kind:
            case "insert" if not here:
                self.rows[one.key] = (one.value, one.wide_value)
                return [self.table.insert(self._row(one.key))]
            case "delete" if here:
                del self.rows[one.key]
                return [self.table.delete({"id": self.base + one.key})]
            case "update" if here:
                self.rows[one.key] = (one.value, one.wide_value if one.wide else self.rows[one.key][1])
                return [self.table.update(self._image(one.key, one.wide), complete=one.wide)]
            case "move" if here and not there:
                wide = one.wide_value if one.wide else self.rows[one.key][1]
                del self.rows[one.key]
                self.rows[one.to] = (one.value, wide)
                return self.table.move({"id": self.base + one.key}, self._image(one.to, one.wide), complete=one.wide)
        return []

    def _row(self, key: int) -> Row:
        value, wide = self.rows[key]
        return {"id": self.base + key, "v": value, "w": wide}

    def _image(self, key: int, wide: bool) -> Row:
        row = self._row(key)
        return row if wide else {"id": row["id"], "v": row["v"]}

    def held(self) -> list[Row]:
        return [self._row(key) for key in sorted(self.rows)]
