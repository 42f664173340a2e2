"""What the tables of the source hold, from the acts alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

HOSTILE = ("x", "it's", "${env:HOME}", "a\\b", "", "NULL", "%s {0} :x", "ä€😀")
GOOD_TIME, BAD_TIME = "2026-01-02 03:04:05", "infinity"
KEY, NUMBER, TEXT, TIME, SECRET = "id", "a", "v", "at", "s"
NAMES = ("c", "d", TEXT, "e")
"""Names of columns that are added and renamed."""
TEXT_KEYS = ("a", "A", "${env:HOME}", "ä", "x'y", "b\\")
_ids = count(1)


@dataclass
class Column:
    """``id``: never used again, whatever the name becomes. ``kind``: int, long, text, short or time. ``born``: the
    number of writes to the table before it existed."""

    name: str
    kind: str
    default: Any = None
    born: int = 0
    renamed: bool = False
    id: int = field(default_factory=lambda: next(_ids))


Row = dict[int, Any]
"""Id of the column → value."""


def _value(kind: str, number: int) -> Any:
    match kind:
        case "int" | "long":
            return number % 5
        case "text" | "short":
            return HOSTILE[number % len(HOSTILE)]
    return GOOD_TIME


@dataclass
class Table:
    """``called``: its name now. ``writes``: how many rows were written; ``altered``: how many of them before the last
    statement. ``written``: key → number of writes that made, changed or deleted it. ``bad``: keys whose row cannot be
    represented; ``moved``: keys between which such a row has moved. ``withheld``: columns that came after the first
    copy, of a sensitive table. ``named``: columns that the YAML names, which keep their names. ``former``: names that
    columns once had, and the number of messages before they lost them; ``reused``: one of them has become another
    column's; ``confused``: and no message came in between. ``shows_renames``, ``truncates``: whether the stream of the
    source shows them. ``has_ids``: its catalog does."""

    name: str
    text_keys: bool
    named: frozenset[str] = frozenset()
    columns: list[Column] = field(default_factory=list)
    rows: dict[Any, Row] = field(default_factory=dict)
    writes: int = 0
    truncations: int = 0
    altered: int = -1
    written: dict[Any, int] = field(default_factory=dict)
    bad: set[Any] = field(default_factory=set)
    moved: set[Any] = field(default_factory=set)
    withheld: set[int] = field(default_factory=set)
    shows_renames: bool = True
    has_ids: bool = False
    truncates: bool = True
    called: str = ""
    former: dict[str, int] = field(default_factory=dict)
    reused: bool = False
    confused: bool = False

    def __post_init__(self) -> None:
        kinds = {KEY: "key", NUMBER: "int", TEXT: "text", TIME: "time", SECRET: "text"}
        self.called = self.called or self.name
        self.columns = [Column(name, kind) for name, kind in kinds.items()]
        for number in (1, 2, 3):
            self.put(self.key(number), self.values(number))
        self.written.clear()

    def key(self, number: int) -> Any:
        return TEXT_KEYS[number % len(TEXT_KEYS)] if self.text_keys else number % 9

    def values(self, number: int) -> dict[str, Any]:
        """Of the columns beside the key, by name. Two columns of one kind differ, so that their exchange shows."""
        return {one.name: _value(one.kind, number + at) for at, one in enumerate(self.columns, -1) if one.name != KEY}

    def column(self, name: str) -> Column | None:
        return next((one for one in self.columns if one.name == name), None)

    @property
    def changeable(self) -> list[Column]:
        """Columns that statements may drop and rename."""
        fixed = {KEY, TIME, NUMBER, SECRET} | self.named
        return [one for one in self.columns if one.name not in fixed]

    def named_row(self, key: Any) -> dict[str, Any]:
        return {one.name: self.rows[key][one.id] for one in self.columns}

    def put(self, key: Any, values: dict[str, Any]) -> None:
        self.rows[key] = {one.id: key if one.name == KEY else values[one.name] for one in self.columns}
        self._wrote(key)
        self.bad.discard(key)
        if values[TIME] == BAD_TIME:
            self.bad.add(key)

    def delete(self, key: Any) -> None:
        del self.rows[key]
        self._wrote(key)
        self.bad.discard(key)

    def move(self, key: Any, to: Any) -> None:
        row = self.rows.pop(key)
        self.rows[to] = row | {self.columns[0].id: to}
        self._wrote(key)
        self._wrote(to)
        if key in self.bad:
            self.bad = self.bad - {key} | {to}
            self.moved |= {key, to}

    def truncate(self) -> None:
        for key in self.rows:
            self.written[key] = self.written.get(key, 0) + 1
        self.rows.clear()
        self.bad.clear()
        self.writes += 1
        self.truncations += 1

    def add(self, name: str, kind: str, default: Any) -> Column:
        self._gets(name)
        column = Column(name, kind, default, self.writes)
        self.columns.append(column)
        for row in self.rows.values():
            row[column.id] = default
        return column

    def drop(self, column: Column) -> None:
        self.columns.remove(column)
        self.former[column.name] = self._messages

    def rename(self, column: Column, name: str) -> None:
        self._gets(name)
        self.former[column.name] = self._messages
        column.name, column.born, column.renamed = name, self.writes, True

    @property
    def _messages(self) -> int:
        """With columns of the table."""
        return self.writes - self.truncations

    def _gets(self, name: str) -> None:
        self.reused |= name in self.former
        self.confused |= self.former.get(name) == self._messages

    def _wrote(self, key: Any) -> None:
        self.writes += 1
        self.written[key] = self.written.get(key, 0) + 1
