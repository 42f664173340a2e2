"""What a comparison found different: keys, and the columns whose hashes differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

KEY_SEPARATOR = "\x01"
"""Between the columns of a key's text."""


@dataclass(frozen=True)
class RowDifference:
    """``key``: its text. ``source``, ``target``: the hash of each column, or one hash of a row without a key; None if
    the side does not have the row."""

    key: str
    source: tuple[str, ...] | None
    target: tuple[str, ...] | None

    @property
    def shown_key(self) -> str:
        return self.key.replace(KEY_SEPARATOR, ", ")


@dataclass(frozen=True)
class ValueDifference:
    """A line of the report. ``column``: None for a row without a key."""

    key: str
    column: str | None
    source_hash: str | None
    target_hash: str | None


def row_differences(counted: Iterable[tuple[str, str, int]]) -> list[RowDifference]:
    """``counted``: key, hashes, and how often the source has such a row more often than the target; by key. A key with
    several rows on one side has several differences."""
    found = []
    for key, rows in groupby(counted, key=lambda row: row[0]):
        sides: tuple[list[str], list[str]] = ([], [])
        for _, hashes, more in rows:
            sides[more < 0].append(hashes)
        found += [RowDifference(key, _split(one), _split(other)) for one, other in zip_longest(*map(sorted, sides))]
    return found


def _split(hashes: str | None) -> tuple[str, ...] | None:
    return None if hashes is None else tuple(hashes.split(","))


def report_lines(
    differences: Iterable[RowDifference], columns: Sequence[str], keyless: bool
) -> Iterator[ValueDifference]:
    names: Sequence[str | None] = [None] if keyless else columns
    absent = (None,) * len(names)
    for row in differences:
        for column, source, target in zip(names, row.source or absent, row.target or absent, strict=True):
            if source != target:
                yield ValueDifference(row.shown_key, column, source, target)
