"""Random histories: hundreds of them share one table, each with rows of its own, so that one job folds all of them.

Each history has its own random generator: replayed alone it is the same. Events of the whole table (a truncate, a new
copy, the ends of windows and batches) come from one generator of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from random import Random

from tests.model.source import Change, Row, Source

COLUMNS = ("h", "id", "v", "w", "n")
KEY = 2
IDS = (None, 0, 1, 2, 3, 4)
TEXTS = ("a", "", None)
WIDE = ("x" * 9, "y" * 9, None)
NUMBERS = ("0.0", "-0.0", "NaN", "1.5", None)
"""Floats as text: as values 0.0 and -0.0 would be one row, and NaN none."""
VALUES = (TEXTS, WIDE, NUMBERS)
MOST_TRANSACTIONS, MOST_STATEMENTS = 3, 4


class Completeness(Enum):
    """Which columns a source omits from its changes. ``PARTIAL``: columns of any change. ``COMPLETE_UPSERTS``: columns
    of changes other than upserts, since a copy that ignores deletes cannot detect whether its row still exists at the
    source. ``COMPLETE``: none, and the source never truncates: its changes have the same result in any order."""

    PARTIAL = auto()
    COMPLETE_UPSERTS = auto()
    COMPLETE = auto()

    def of(self, change: Change) -> Change:
        whole = self is Completeness.COMPLETE or (self is Completeness.COMPLETE_UPSERTS and change.op == "upsert")
        return replace(change, known=None) if whole else change


@dataclass(frozen=True)
class Delivery:
    """One transaction, or (without changes) a new copy of the table. ``twice``: changes with a duplicate that follows
    immediately; ``later``: changes with a duplicate at the end of the window."""

    history: int
    changes: tuple[Change, ...] = ()
    twice: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()


@dataclass
class RandomHistories:
    """``windows``: the deliveries of each window. ``batches``: the number of windows in each batch. ``source`` has
    committed every transaction."""

    source: Source
    windows: list[list[Delivery]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)


def random_histories(
    seed: object,
    histories: int,
    windows: int,
    keyed: bool,
    only: int | None = None,
    completeness: Completeness = Completeness.PARTIAL,
) -> RandomHistories:
    """``only``: without the transactions of all other histories."""
    table = Random(f"{seed} table")
    randoms = [Random(f"{seed} {number}") for number in range(histories)]
    rows_by_history = [_start(random, number, keyed) for number, random in enumerate(randoms)]
    kept = [number for number in range(histories) if only in (None, number)]
    made = RandomHistories(
        Source(KEY if keyed else 0, tuple(row for number in kept for row in rows_by_history[number]))
    )
    for _ in range(windows):
        truncate_at, copy_at = (table.choice((None, None, table.randrange(histories))) for _ in range(2))
        window: list[Delivery] = []
        for number, random in enumerate(randoms):
            window += [Delivery(number)] if number == copy_at else []
            truncated = number == truncate_at and completeness is not Completeness.COMPLETE
            for transaction in _transactions(random, rows_by_history, number, keyed, truncated):
                changes = [completeness.of(one) for one in transaction if number in kept or one.op == "truncate"]
                if changes:
                    made.source.commit(changes)
                    window.append(_delivery(random, number, changes))
        made.windows.append(window)
    while (left := windows - sum(made.batches)) > 0:
        made.batches.append(min(left, table.choice((1, 1, 2, 3))))
    return made


def _start(random: Random, number: int, keyed: bool) -> list[Row]:
    if keyed:
        return [(number, one, *_values(random)) for one in IDS if random.random() < 0.5]
    return [(number, 0, *_values(random)) for _ in range(random.randrange(4))]


def _values(random: Random) -> Row:
    return tuple(random.choice(values) for values in VALUES)


def _delivery(random: Random, number: int, changes: list[Change]) -> Delivery:
    again = [random.random() for _ in changes]
    twice = frozenset(at for at, one in enumerate(again) if one < 0.1)
    return Delivery(number, tuple(changes), twice, frozenset(at for at, one in enumerate(again) if 0.1 <= one < 0.2))


def _transactions(
    random: Random, rows_by_history: list[list[Row]], number: int, keyed: bool, truncated: bool
) -> Iterator[list[Change]]:
    """The transactions of one history in one window. A truncate is in the middle of a transaction and removes the rows
    of all histories."""
    for _ in range(random.randint(0, MOST_TRANSACTIONS)):
        yield list(_transaction(random, rows_by_history[number], number, keyed))
    if truncated:
        before = list(_transaction(random, rows_by_history[number], number, keyed))
        for rows in rows_by_history:
            rows.clear()
        yield [*before, Change("truncate"), *_transaction(random, rows_by_history[number], number, keyed)]


def _transaction(random: Random, rows: list[Row], number: int, keyed: bool) -> Iterator[Change]:
    for _ in range(random.randint(1, MOST_STATEMENTS)):
        statement = random.choice(KEYED if keyed else KEYLESS)
        for change in statement(random, list(rows), number):
            if change.old is not None:
                rows.remove(change.old)
            if change.new is not None:
                rows.append(change.new)
            yield change


# Statements on a table with a key: (random, rows, history) -> changes. At most one row has a key at any moment.

Statement = Callable[[Random, list[Row], int], list[Change]]


def _key(row: Row) -> object:
    return row[1]


def _free(random: Random, rows: list[Row]) -> object | None:
    """A key that no row has; the text ``full`` where there is none, since None is a key too."""
    free = [one for one in IDS if one not in {_key(row) for row in rows}]
    return random.choice(free) if free else "full"


def _new_image(random: Random, row: Row, key: object, rest: Row) -> tuple[Row, frozenset[int] | None]:
    """A new image of a row and its known columns: all (None), or some, while the others are as in ``rest``."""
    values = _values(random)
    if random.random() < 0.5:
        return (row[0], key, *values), None
    known = frozenset(at for at in range(KEY, len(COLUMNS)) if random.random() < 0.4)
    mixed = tuple(values[at - KEY] if at in known else rest[at - KEY] for at in range(KEY, len(COLUMNS)))
    return (row[0], key, *mixed), known


def insert(random: Random, rows: list[Row], number: int) -> list[Change]:
    key = _free(random, rows)
    if key == "full":
        return []
    new, known = _new_image(random, (number,), key, (None, None, None))
    return [Change("insert", None, new, known)]


def update(random: Random, rows: list[Row], number: int) -> list[Change]:
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _new_image(random, old, _key(old), old[KEY:])
    return [Change("update", old, new, known)]


def upsert(random: Random, rows: list[Row], number: int) -> list[Change]:
    """The source does not report whether the row existed."""
    return [
        Change("upsert", one.old, one.new, one.known) for one in random.choice((insert, update))(random, rows, number)
    ]


def put_back(random: Random, rows: list[Row], number: int) -> list[Change]:
    """``replace``: columns that the change does not name become NULL."""
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _new_image(random, old, _key(old), (None, None, None))
    return [Change("replace", old, new, known)]


def delete(random: Random, rows: list[Row], number: int) -> list[Change]:
    return [Change("delete", random.choice(rows))] if rows else []


def revive(random: Random, rows: list[Row], number: int) -> list[Change]:
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _new_image(random, old, _key(old), (None, None, None))
    return [Change("delete", old), Change("insert", None, new, known)]


def move(random: Random, rows: list[Row], number: int) -> list[Change]:
    key = _free(random, rows)
    if not rows or key == "full":
        return []
    return [_moved(random, random.choice(rows), key)]


def swap(random: Random, rows: list[Row], number: int) -> list[Change]:
    """Through a third key: no two rows have the same key at once."""
    spare = _free(random, rows)
    if len(rows) < 2 or spare == "full":
        return []
    one, other = random.sample(rows, 2)
    away = _moved(random, one, spare)
    back = _moved(random, other, _key(one))
    assert away.new is not None
    return [away, back, _moved(random, away.new, _key(other))]


def shift(random: Random, rows: list[Row], number: int) -> list[Change]:
    """``id = id + 1`` over a range of keys, the last one first; ``id = id - 1`` in reverse order."""
    step = random.choice((1, -1))
    by_key = {_key(row): row for row in rows if _key(row) is not None}
    starts = [key for key in by_key if key + step not in by_key and key + step in IDS]  # type: ignore[operator]
    if not starts:
        return []
    at, changes = random.choice(starts), []
    while at in by_key and len(changes) < len(IDS):
        changes.append(_moved(random, by_key[at], at + step))  # type: ignore[operator]
        at = at - step  # type: ignore[operator]
    return changes


def there_and_back(random: Random, rows: list[Row], number: int) -> list[Change]:
    spare = _free(random, rows)
    if not rows or spare == "full":
        return []
    away = _moved(random, random.choice(rows), spare)
    assert away.old is not None and away.new is not None
    return [away, _moved(random, away.new, _key(away.old))]


def _moved(random: Random, old: Row, key: object) -> Change:
    new, known = _new_image(random, old, key, old[KEY:])
    return Change("move", old, new, known)


# Statements on a table without key, which produce equal rows.


def add(random: Random, rows: list[Row], number: int) -> list[Change]:
    equal = rows and random.random() < 0.5
    return [Change("insert", None, random.choice(rows) if equal else (number, 0, *_values(random)))]


def change_one(random: Random, rows: list[Row], number: int) -> list[Change]:
    if not rows:
        return []
    new = random.choice((*rows, (number, 0, *_values(random))))
    return [Change("update", random.choice(rows), new)]


KEYED: tuple[Statement, ...] = (
    insert,
    insert,
    update,
    update,
    update,
    upsert,
    put_back,
    delete,
    revive,
    move,
    move,
    swap,
    shift,
    there_and_back,
)
KEYLESS: tuple[Statement, ...] = (add, add, change_one, change_one, delete)
