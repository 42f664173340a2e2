"""Random histories: hundreds of them share one table, each with rows of its own, so that one job folds them all.

Every history draws from a random generator of its own: played again alone it is the same. What happens to the table as
a whole (truncate, a new copy, the ends of windows and batches) is drawn once for all.
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


class Telling(Enum):
    """What a source leaves out of its changes. ``PARTLY``: columns of any change. ``WHOLE_UPSERTS``: not those of an
    upsert, for a copy that ignores deletes cannot know whether a row that it holds is still there. ``WHOLE``: nothing,
    and it never truncates: its changes mean the same in any order."""

    PARTLY = auto()
    WHOLE_UPSERTS = auto()
    WHOLE = auto()

    def of(self, change: Change) -> Change:
        whole = self is Telling.WHOLE or (self is Telling.WHOLE_UPSERTS and change.op == "upsert")
        return replace(change, known=None) if whole else change


@dataclass(frozen=True)
class Told:
    """One transaction, or (without changes) a new copy of the table. ``twice``: the changes that are delivered again at
    once; ``later``: those delivered again at the end of the window."""

    history: int
    changes: tuple[Change, ...] = ()
    twice: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()


@dataclass
class Story:
    """``windows``: what is told in each. ``batches``: how many windows each batch holds. ``source`` has seen it all."""

    source: Source
    windows: list[list[Told]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)


def story(
    seed: object,
    histories: int,
    windows: int,
    keyed: bool,
    only: int | None = None,
    telling: Telling = Telling.PARTLY,
) -> Story:
    """``only``: leave out what the other histories do."""
    table = Random(f"{seed} table")
    randoms = [Random(f"{seed} {number}") for number in range(histories)]
    held = [_start(random, number, keyed) for number, random in enumerate(randoms)]
    kept = [number for number in range(histories) if only in (None, number)]
    made = Story(Source(KEY if keyed else 0, tuple(row for number in kept for row in held[number])))
    for _ in range(windows):
        truncate_at, copy_at = (table.choice((None, None, table.randrange(histories))) for _ in range(2))
        window: list[Told] = []
        for number, random in enumerate(randoms):
            window += [Told(number)] if number == copy_at else []
            truncated = number == truncate_at and telling is not Telling.WHOLE
            for transaction in _transactions(random, held, number, keyed, truncated):
                mine = [telling.of(one) for one in transaction if number in kept or one.op == "truncate"]
                if mine:
                    made.source.commit(mine)
                    window.append(_told(random, number, mine))
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


def _told(random: Random, number: int, changes: list[Change]) -> Told:
    again = [random.random() for _ in changes]
    twice = frozenset(at for at, one in enumerate(again) if one < 0.1)
    return Told(number, tuple(changes), twice, frozenset(at for at, one in enumerate(again) if 0.1 <= one < 0.2))


def _transactions(
    random: Random, held: list[list[Row]], number: int, keyed: bool, truncated: bool
) -> Iterator[list[Change]]:
    """What one history does in one window. A truncate stands in the middle of a transaction and empties them all."""
    for _ in range(random.randint(0, MOST_TRANSACTIONS)):
        yield list(_transaction(random, held[number], number, keyed))
    if truncated:
        before = list(_transaction(random, held[number], number, keyed))
        for rows in held:
            rows.clear()
        yield [*before, Change("truncate"), *_transaction(random, held[number], number, keyed)]


def _transaction(random: Random, rows: list[Row], number: int, keyed: bool) -> Iterator[Change]:
    for _ in range(random.randint(1, MOST_STATEMENTS)):
        statement = random.choice(KEYED if keyed else KEYLESS)
        for change in statement(random, list(rows), number):
            if change.old is not None:
                rows.remove(change.old)
            if change.new is not None:
                rows.append(change.new)
            yield change


# Statements on a table with a key: (random, rows, history) -> changes. At most one row holds a key at any moment.

Statement = Callable[[Random, list[Row], int], list[Change]]


def _key(row: Row) -> object:
    return row[1]


def _free(random: Random, rows: list[Row]) -> object | None:
    """A key nobody holds; the text ``full`` where there is none, for None is a key too."""
    free = [one for one in IDS if one not in {_key(row) for row in rows}]
    return random.choice(free) if free else "full"


def _partly(random: Random, row: Row, key: object, rest: Row) -> tuple[Row, frozenset[int] | None]:
    """A new image of a row, and what of it is told: all, or some columns while the others are as in ``rest``."""
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
    new, known = _partly(random, (number,), key, (None, None, None))
    return [Change("insert", None, new, known)]


def update(random: Random, rows: list[Row], number: int) -> list[Change]:
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _partly(random, old, _key(old), old[KEY:])
    return [Change("update", old, new, known)]


def upsert(random: Random, rows: list[Row], number: int) -> list[Change]:
    """Told by a source that does not say whether the row was there."""
    return [
        Change("upsert", one.old, one.new, one.known) for one in random.choice((insert, update))(random, rows, number)
    ]


def put_back(random: Random, rows: list[Row], number: int) -> list[Change]:
    """``replace``: the columns it does not name are NULL from then on."""
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _partly(random, old, _key(old), (None, None, None))
    return [Change("replace", old, new, known)]


def delete(random: Random, rows: list[Row], number: int) -> list[Change]:
    return [Change("delete", random.choice(rows))] if rows else []


def revive(random: Random, rows: list[Row], number: int) -> list[Change]:
    if not rows:
        return []
    old = random.choice(rows)
    new, known = _partly(random, old, _key(old), (None, None, None))
    return [Change("delete", old), Change("insert", None, new, known)]


def move(random: Random, rows: list[Row], number: int) -> list[Change]:
    key = _free(random, rows)
    if not rows or key == "full":
        return []
    return [_moved(random, random.choice(rows), key)]


def swap(random: Random, rows: list[Row], number: int) -> list[Change]:
    """Through a third key: no two rows hold a key at once."""
    spare = _free(random, rows)
    if len(rows) < 2 or spare == "full":
        return []
    one, other = random.sample(rows, 2)
    away = _moved(random, one, spare)
    here = _moved(random, other, _key(one))
    assert away.new is not None
    return [away, here, _moved(random, away.new, _key(other))]


def shift(random: Random, rows: list[Row], number: int) -> list[Change]:
    """``id = id + 1`` over a run of keys, the last one first; ``id = id - 1`` the other way round."""
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
    new, known = _partly(random, old, key, old[KEY:])
    return Change("move", old, new, known)


# Statements on a table without key: equal rows are wanted.


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
