"""Cases of a fold: the changes of a few rows, and the rows of the source after them. The numbers are those of the
counter-examples that a merge by newest event gets wrong.

Keyed rows are ``(id, v, w)``; ``w`` is wide, so that a source may leave it out where it did not change. Rows without
key are a text and a number. In some sources two rows may hold one key for a moment (4: a swap or a shift in one
statement), and some deliver out of order (11, 14b, 19): those need folds of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.scripted_table import Row, ScriptedTable

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
KEYED = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT), Column("w", TEXT)), ("id",))
KEYLESS = TableSchema("public.t", (Column("c", INT), Column("v", TEXT), Column("f", LogicalType(Kind.FLOAT64))))

Changes = list[ChangeRecord | list[ChangeRecord]]


@dataclass(frozen=True)
class Case:
    """``before`` and ``after``: the rows. ``changes``: made by KeyedChanges, or by KeylessChanges."""

    before: Sequence[tuple[Any, ...]]
    changes: Callable[[Any], Changes]
    after: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class KeyedChanges:
    """Makes changes of keyed rows whose keys are counted from ``base``."""

    table: ScriptedTable
    base: int

    def insert(self, *values: Any) -> ChangeRecord:
        return self.table.insert(self.row(*values))

    def update(self, *values: Any, op: str = "update") -> ChangeRecord:
        """Without the wide value if it is not given."""
        return self.table.update(self.row(*values), complete=len(values) == 3, op=op)

    def delete(self, *values: Any) -> ChangeRecord:
        return self.table.delete(self.row(*values))

    def move(self, old: int, *values: Any) -> list[ChangeRecord]:
        return self.table.move(self.row(old), self.row(*values), complete=len(values) == 3)

    def row(self, *values: Any) -> Row:
        return {"id": self.base + values[0], **dict(zip(("v", "w"), values[1:], strict=False))}


def at_one_position(departure: ChangeRecord, arrival: ChangeRecord) -> Changes:
    """Both halves of a change have one position in the stream and differ by their phase alone; the log contains them in
    the wrong order."""
    return [
        replace(arrival, order_key=f"{departure.order_key}1"),
        replace(departure, order_key=f"{departure.order_key}0"),
    ]


WHOLE: dict[str, Case] = {
    "1 chain, then delete": Case(
        [(0, "a", "w")], lambda t: [t.move(0, 1, "a", "w"), t.move(1, 2, "a", "w"), t.delete(2, "a", "w")], []
    ),
    "1b chain": Case([(0, "a", "w")], lambda t: [t.move(0, 1, "a", "w"), t.move(1, 2, "a", "w")], [(2, "a", "w")]),
    "1c move, then delete": Case([(0, "a", "w")], lambda t: [t.move(0, 1, "a", "w"), t.delete(1, "a", "w")], []),
    "2 there and back": Case(
        [(0, "a", "w")], lambda t: [t.move(0, 1, "a", "w"), t.move(1, 0, "b", "w")], [(0, "b", "w")]
    ),
    "3 swap through a temporary key": Case(
        [(1, "x", "w"), (2, "y", "w")],
        lambda t: [t.move(1, 9, "x", "w"), t.move(2, 1, "y", "w"), t.move(9, 2, "x", "w")],
        [(1, "y", "w"), (2, "x", "w")],
    ),
    "4b shift in descending order": Case(
        [(1, "x", "w"), (2, "y", "w"), (3, "z", "w")],
        lambda t: [t.move(3, 4, "z", "w"), t.move(2, 3, "y", "w"), t.move(1, 2, "x", "w")],
        [(2, "x", "w"), (3, "y", "w"), (4, "z", "w")],
    ),
    "5 move out, insert at the old key, move again": Case(
        [(0, "a", "w")],
        lambda t: [t.move(0, 1, "a", "w"), t.insert(0, "b", "w"), t.move(0, 2, "b", "w")],
        [(1, "a", "w"), (2, "b", "w")],
    ),
    "5b move out, insert and delete at the old key": Case(
        [(0, "a", "w")],
        lambda t: [t.move(0, 1, "a", "w"), t.insert(0, "b", "w"), t.delete(0, "b", "w")],
        [(1, "a", "w")],
    ),
    "6 insert on a key that is there": Case([(0, "a", "w")], lambda t: [t.insert(0, "b", "w")], [(0, "b", "w")]),
    "6b delete, insert": Case(
        [(0, "a", "w")], lambda t: [t.delete(0, "a", "w"), t.insert(0, "b", "w")], [(0, "b", "w")]
    ),
    "6b delete, insert, update": Case(
        [(0, "a", "w")],
        lambda t: [t.delete(0, "a", "w"), t.insert(0, "b", "w"), t.update(0, "c", "w")],
        [(0, "c", "w")],
    ),
    "6b delete, insert, delete": Case(
        [(0, "a", "w")], lambda t: [t.delete(0, "a", "w"), t.insert(0, "b", "w"), t.delete(0, "b", "w")], []
    ),
    "6b insert, delete, insert": Case(
        [], lambda t: [t.insert(0, "a", "w"), t.delete(0, "a", "w"), t.insert(0, "b", "w")], [(0, "b", "w")]
    ),
    "10 update whose old key alone is sent": Case([(0, "a", "w")], lambda t: [t.move(0, 1, "b", "x")], [(1, "b", "x")]),
    "11b departure and arrival at one position": Case(
        [(0, "a", "w")], lambda t: at_one_position(t.delete(0, "a", "w"), t.insert(0, "b", "w")), [(0, "b", "w")]
    ),
    "18 everything delivered twice": Case(
        [(1, "a", "w")],
        lambda t: [*(twice := [t.update(1, "b", "w"), *t.move(1, 2, "c", "w")]), *twice],
        [(2, "c", "w")],
    ),
    "a NULL is a value": Case([(0, "a", "w")], lambda t: [t.update(0, None, None)], [(0, None, None)]),
}

PARTIAL: dict[str, Case] = {
    "15 changes of some columns are folded by column": Case(
        [(1, "a", "big"), (2, "a", "big")],
        lambda t: [
            t.update(1, "b", "huge"),
            t.update(1, "c"),
            t.update(2, "d"),
            t.insert(3, "e", "new"),
            t.update(3, "f"),
        ],
        [(1, "c", "huge"), (2, "d", "big"), (3, "f", "new")],
    ),
    "15 a known NULL is a value, an absent column is not": Case(
        [(1, "a", "big")], lambda t: [t.update(1, "b", None), t.update(1, "c")], [(1, "c", None)]
    ),
    "15b a move takes the unknown column along": Case(
        [(0, "a", "big")], lambda t: [t.move(0, 1, "b")], [(1, "b", "big")]
    ),
    "15b a row that is put moves on with what is there": Case(
        [(1, "a", "big")],
        lambda t: [
            *(t.update(1, "b", op="upsert"), t.move(1, 3, "c")),
            *(t.update(2, "b", op="upsert"), t.move(2, 4, "c")),
        ],
        [(3, "c", "big"), (4, "c", None)],
    ),
    "15b over a swap and a chain": Case(
        [(1, "a", "one"), (2, "b", "two"), (3, "c", "three")],
        lambda t: [
            t.move(1, 9, "a"),
            t.move(2, 1, "b"),
            t.move(9, 2, "A"),
            t.move(3, 4, "c"),
            t.update(4, "c", "changed"),
            t.move(4, 5, "C"),
        ],
        [(1, "b", "two"), (2, "A", "one"), (5, "C", "changed")],
    ),
    "15b from a row that the batch itself brought": Case(
        [], lambda t: [t.insert(6, "d", "six"), t.move(6, 7, "D"), t.update(7, "E")], [(7, "E", "six")]
    ),
    "15c a replace between changes of some columns": Case(
        [(1, "a", "big")], lambda t: [t.update(1, "b", "huge"), t.update(1, "c", op="replace")], [(1, "c", None)]
    ),
    "15c a replace, and a change of some columns after it": Case(
        [(1, "a", "big")], lambda t: [t.update(1, "b", op="replace"), t.update(1, "c")], [(1, "c", None)]
    ),
    "a new row has no values of the deleted one": Case(
        [(1, "a", "big")], lambda t: [t.delete(1), t.update(1, "b", op="upsert")], [(1, "b", None)]
    ),
    "an upsert of some columns inserts or updates": Case(
        [(1, "a", "big")],
        lambda t: [t.update(1, "b", op="upsert"), t.update(2, "b", op="upsert")],
        [(1, "b", "big"), (2, "b", None)],
    ),
    "a row deleted by its key alone": Case(
        [(1, "a", "big"), (2, "b", "big")], lambda t: [t.delete(1)], [(2, "b", "big")]
    ),
}


@dataclass(frozen=True)
class KeylessChanges:
    """Makes changes of rows without key; ``case`` separates the cases of one batch."""

    table: ScriptedTable
    case: int

    def insert(self, *values: Any) -> ChangeRecord:
        return self.table.insert(self.row(*values))

    def delete(self, *values: Any) -> ChangeRecord:
        return self.table.delete(self.row(*values))

    def update(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> ChangeRecord:
        return self.table.update(self.row(*after), before=self.row(*before))

    def row(self, text: str | None, number: float | str | None) -> Row:
        return {"c": self.case, "v": text, "f": number}


A, B = ("a", 1.5), ("b", 1.5)

KEYLESS_CASES: dict[str, Case] = {
    "7 of two rows of NULLs one goes": Case(
        [(None, None), (None, None)], lambda t: [t.delete(None, None)], [(None, None)]
    ),
    "8 of two equal rows one goes": Case([A, A], lambda t: [t.delete(*A)], [A]),
    "8b two equal rows come, one goes": Case([], lambda t: [t.insert(*A), t.insert(*A), t.delete(*A)], [A]),
    "8c one of two equal rows changes": Case([A, A], lambda t: [t.update(A, B)], [A, B]),
    "8d both of two equal rows change": Case([A, A], lambda t: [t.update(A, B), t.update(A, B)], [B, B]),
    "18 everything delivered twice": Case([], lambda t: [*(twice := [t.insert(*A), t.insert(*A)]), *twice], [A, A]),
    "a row that only passes by": Case([], lambda t: [t.insert(*A), t.delete(*A)], []),
    "an empty text is no NULL": Case(
        [("", 1.5), (None, 1.5)], lambda t: [t.update((None, 1.5), ("x", 1.5))], [("", 1.5), ("x", 1.5)]
    ),
}

ZEROS = {
    "equal numbers that are not equal copies": Case(
        [("z", 0.0), ("z", -0.0)], lambda t: [t.delete("z", -0.0)], [("z", 0.0)]
    ),
}
NO_NUMBERS = {
    "of two rows without a number one goes": Case(
        [("n", "NaN"), ("n", "NaN")], lambda t: [t.delete("n", "NaN")], [("n", "NaN")]
    ),
}
