"""The rows of a table in all their versions, in the order of the key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

Key = tuple[tuple[Any, ...], ...]
"""Sort keys of the columns of the primary key."""

Row = Mapping[str, Any]
"""Stored values by the names of the columns; those that are missing are NULL."""

Version = tuple[int, Row | None]
"""Time and row; None where it was deleted."""


class Range(NamedTuple):
    """Bounds are prefixes of keys: all keys that begin with a closed bound are inside, with an open one outside."""

    start: Key
    end: Key
    start_open: bool = False
    end_open: bool = False

    def is_key(self, columns: int) -> bool:
        """Whether it is one whole key of so many columns."""
        return len(self.start) == columns and self.start == self.end

    def holds(self, key: Key) -> bool:
        first, last = key[: len(self.start)], key[: len(self.end)]
        after = first > self.start if self.start_open else first >= self.start
        return after and (last < self.end if self.end_open else last <= self.end)


EVERYTHING = Range((), ())


@dataclass(frozen=True)
class ReadKeys:
    """What was read. ``whole``: keys; ``prefixes``: all keys that begin with one of them."""

    whole: frozenset[Key]
    prefixes: frozenset[Key]
    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, parts: Iterable[Range], columns: int) -> ReadKeys:
        """``columns``: of a whole key."""
        whole, prefixes, ranges = set[Key](), set[Key](), []
        for part in parts:
            if part.start != part.end or not part.start:
                ranges.append(part)
            elif len(part.start) == columns:
                whole.add(part.start)
            else:
                prefixes.add(part.start)
        return cls(frozenset(whole), frozenset(prefixes), tuple(ranges))

    def have_any(self, keys: Collection[Key]) -> bool:
        if not self.whole.isdisjoint(keys):
            return True
        lengths = {len(prefix) for prefix in self.prefixes}
        if any(key[:length] in self.prefixes for length in lengths for key in keys):
            return True
        return any(part.holds(key) for part in self.ranges for key in keys)


class Rows:
    """Times are microseconds; each change has a later one than those before."""

    def __init__(self) -> None:
        self._versions: dict[Key, list[Version]] = {}
        self._keys: list[Key] = []
        self._changes: list[tuple[int, Key]] = []

    def get(self, key: Key, time: int) -> Row | None:
        versions = self._versions.get(key, ())
        number = bisect_right(versions, time, key=itemgetter(0))
        return versions[number - 1][1] if number else None

    def scan(self, part: Range, time: int) -> Iterator[tuple[Key, Row]]:
        for number in range(bisect_left(self._keys, part.start), len(self._keys)):
            key = self._keys[number]
            if key[: len(part.end)] > part.end:
                return
            row = self.get(key, time) if part.holds(key) else None
            if row is not None:
                yield key, row

    def put(self, key: Key, row: Row | None, time: int) -> None:
        if key not in self._versions:
            self._versions[key] = []
            insort(self._keys, key)
        versions = self._versions[key]
        if versions and versions[-1][0] == time:  # an earlier mutation of the same commit
            versions[-1] = (time, row)
        else:
            versions.append((time, row))
        self._changes.append((time, key))

    def changed_since(self, time: int) -> list[Key]:
        """The keys with a version later than this time."""
        start = bisect_right(self._changes, time, key=itemgetter(0))
        return [key for _, key in self._changes[start:]]
