"""A concurrent writer: it changes the source in small transactions from a seed and records them in the ledger.

Each row contains the numbers of its earlier changes, so that lost, duplicate and reordered changes show in the rows.
Some transactions are rolled back, some stay open for a while, some exchange keys, a few truncate a table."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg

from tests.faults.checker.ledger import Change, Ledger, Row, Shape

ACCOUNTS = Shape("public.accounts", "accounts", ("id", "past", "amount", "note"), (0,))
BRANCHES = tuple(replace(ACCOUNTS, table=table, shared=True) for table in (ACCOUNTS.table, "public.branch"))
"""In one target table."""
EVENTS = Shape("public.events", "events", ("n", "what"), ())
SHAPES, SHARED_SHAPES = (ACCOUNTS, EVENTS), (*BRANCHES, EVENTS)

COLUMNS = {
    ACCOUNTS.columns: "id bigint primary key, past text not null, amount numeric(12,2), note text",
    EVENTS.columns: "n bigint, what text",
    ("a", "b", "past"): "a integer, b text, past text not null, primary key (a, b)",
}
ROWS = 60
PAUSE_S = 0.04


def later(number: int, shared: bool) -> Shape:
    """A table that is added after the others are copied. Its deleted rows are flagged, unless it is ``shared`` with
    theirs."""
    if shared:
        return replace(BRANCHES[0], table=f"public.branch_{number}")
    return Shape(f"public.later_{number}", f"later_{number}", ("a", "b", "past"), (0, 1), soft=True)


class Writer:
    """One connection and one transaction at a time. ``first``: the tables from the beginning; ``shapes``: those it
    writes to at present."""

    def __init__(self, dsn: str, seed: int, first: Sequence[Shape] = SHAPES) -> None:
        self.dsn = dsn
        self.first = first
        self.ledger = Ledger({shape.table: shape for shape in first})
        self.shapes = list(first)
        self._random = random.Random(seed)
        self._rows: dict[str, list[Row]] = {shape.table: [] for shape in first}
        self._number = 0
        self._work = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def fill(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for shape in self.first:
                connection.execute(f"create table {shape.table} ({COLUMNS[shape.columns]})".encode())
                if not shape.key:
                    connection.execute(f"alter table {shape.table} replica identity full".encode())
            for shape in self.first:
                self._transaction(connection, [(shape, "insert")] * ROWS)

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()
        if self._error:
            raise self._error

    def add(self, shape: Shape) -> None:
        """Adds a table with rows; it replaces the last added one."""
        with self._work, psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"create table {shape.table} ({COLUMNS[shape.columns]})".encode())
            self._rows[shape.table] = []
            self.ledger.shapes = {**{one.table: one for one in self.first}, shape.table: shape}
            self.shapes = [EVENTS, shape]
            self._transaction(connection, [(shape, "insert")] * ROWS)

    def drop(self, shape: Shape) -> None:
        with self._work, psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"drop table {shape.table}".encode())
            self.ledger.shapes = {one.table: one for one in self.first}
            self.shapes = list(self.first)

    def use_two_tables(self) -> None:
        """Restricts the writer to two target tables: enough for concurrent failures, and every table costs time in each
        run."""
        others = [shape for shape in self.ledger.shapes.values() if shape is not EVENTS]
        target = self._random.choice(others).target
        self.shapes = [EVENTS, *(shape for shape in others if shape.target == target)]

    def still(self) -> threading.Lock:
        """A lock that stops the writer."""
        return self._work

    def step(self, count: int) -> None:
        """Commits ``count`` transactions now."""
        with self._work, psycopg.connect(self.dsn, autocommit=True) as connection:
            for _ in range(count):
                self._transaction(connection, self._chosen())

    def _loop(self) -> None:
        try:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                while not self._stop.wait(self._random.expovariate(1 / PAUSE_S)):
                    with self._work:
                        self._transaction(connection, self._chosen(), wait=self._random.random() < 0.05)
        except BaseException as error:
            self._error = error

    def _chosen(self) -> list[tuple[Shape, str]]:
        if self._random.random() < 0.01:
            return [(EVENTS, "truncate"), *[(EVENTS, "insert")] * (ROWS // 2)]
        kinds = ("insert", "update", "update", "update", "delete", "rekey", "swap")
        return [
            (self._random.choice(self.shapes), self._random.choice(kinds)) for _ in range(self._random.randint(1, 5))
        ]

    def _transaction(
        self, connection: psycopg.Connection[Any], chosen: list[tuple[Shape, str]], wait: bool = False
    ) -> None:
        changes: list[Change] = []
        before = {table: list(rows) for table, rows in self._rows.items()}
        with connection.transaction() as transaction:
            row = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
            assert row is not None
            for shape, kind in chosen:
                for statement, values, change in self._changed(shape, kind):
                    done = connection.execute(statement.encode(), values).rowcount
                    assert done == 1 or kind == "truncate", f"{statement} {values} changed {done} rows"
                    changes += [change] if change else []
            if wait:
                self._stop.wait(0.3)
            self.ledger.add(row[0], changes)
            if self._random.random() < 0.05:
                del self.ledger.pending[row[0]]
                self._rows = before
                raise psycopg.Rollback(transaction)

    def _changed(self, shape: Shape, kind: str) -> list[tuple[str, list[object], Change | None]]:
        rows, name = self._rows[shape.table], shape.table
        if kind == "truncate":
            rows.clear()
            return [(f"truncate {name}", [], Change(name))]
        if kind == "insert" or len(rows) < 3:
            return [self._put(shape, None, self._made(shape))]
        if len(rows) > 2 * ROWS:
            kind = "delete"
        old = rows[self._random.randrange(len(rows))]
        if kind == "delete":
            return [self._put(shape, old, None)]
        if kind == "update" or not shape.key:
            return [self._put(shape, old, self._grown(shape, old))]
        fresh = self._made(shape)
        if kind == "rekey":
            return [self._put(shape, old, self._under(shape, old, fresh))]
        other = next((row for row in rows if shape.key_of(row) != shape.key_of(old)), None)
        if other is None:
            return []
        away = self._under(shape, old, fresh)  # two rows exchange their keys through a free one
        back = self._under(shape, other, old)
        return [self._put(shape, *one) for one in ((old, away), (other, back), (away, self._under(shape, away, other)))]

    def _put(self, shape: Shape, old: Row | None, new: Row | None) -> tuple[str, list[object], Change]:
        rows, name = self._rows[shape.table], shape.table
        if old is not None:
            rows.remove(old)
        if new is not None:
            rows.append(new)
        change = Change(name, old, new)
        if old is None:
            assert new is not None
            return f"insert into {name} values ({', '.join(['%s'] * len(new))})", list(new), change
        which = " and ".join(f"{shape.columns[index]} = %s" for index in shape.key)
        named: list[object] = list(shape.key_of(old))
        if not shape.key:
            which = f"ctid = (select ctid from {name} where n = %s and what = %s limit 1)"
            named = list(old)
        if new is None:
            return f"delete from {name} where {which}", named, change
        differing = [index for index in range(len(new)) if new[index] != old[index]]
        sets = ", ".join(f"{shape.columns[index]} = %s" for index in differing)
        return f"update {name} set {sets} where {which}", [*(new[index] for index in differing), *named], change

    def _made(self, shape: Shape) -> Row:
        self._number += 1
        number = self._number
        if shape.columns == ACCOUNTS.columns:
            note = self._random.choice([None, "", f"naïve {number}"])
            return (number, str(number), self._random.choice([None, f"{number}.50"]), note)
        if shape is EVENTS:
            return (self._random.randrange(9), self._random.choice("abc"))
        return (number % 1000, f"k{number}", str(number))

    def _grown(self, shape: Shape, old: Row) -> Row:
        if shape is EVENTS:
            made = self._made(shape)
            return made if made != old else (int(str(old[0])) + 10, old[1])
        self._number += 1
        index = shape.columns.index("past")
        past = ",".join([*str(old[index]).split(",")[-20:], str(self._number)])
        return (*old[:index], past, *old[index + 1 :])

    def _under(self, shape: Shape, row: Row, key_of: Row) -> Row:
        """The row under the key of another, with one more change."""
        grown = list(self._grown(shape, row))
        for index in shape.key:
            grown[index] = key_of[index]
        return tuple(grown)
