"""The reference of histories: the versions of each row of a source, and its changes. No code of the product.

Changes are numbered from 1, in the order of the stream; a move is two: the row leaves one key and arrives at another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.model.source import Change, Row, Source


@dataclass(frozen=True)
class Version:
    """``began``: the number of the change that made it; 0 for rows of the first copy. ``ended``: None while it is
    current."""

    row: Row
    began: int
    ended: int | None = None


@dataclass(frozen=True)
class Event:
    """``row``: after the change; None where the row of ``key`` ends. Without a key, all rows end."""

    number: int
    key: Row | None
    row: Row | None


def versions(source: Source) -> set[Version]:
    """A change that leaves a row as it was makes no version."""
    current = {row[: source.key]: Version(row, 0) for row in source.start}
    ended: set[Version] = set()

    def end(key: Row, number: int) -> None:
        if version := current.pop(key, None):
            ended.add(Version(version.row, version.began, number))

    for event in events(source):
        if event.key is None:
            for key in list(current):
                end(key, event.number)
        elif event.row is None:
            end(event.key, event.number)
        elif event.key not in current or current[event.key].row != event.row:
            end(event.key, event.number)
            current[event.key] = Version(event.row, event.number)
    return ended | set(current.values())


def events(source: Source) -> Iterator[Event]:
    number = 0
    for change in (change for transaction in source.transactions for change in transaction):
        for key, row in _rows(change, source.key):
            number += 1
            yield Event(number, key, row)


def _rows(change: Change, key: int) -> Iterator[tuple[Row | None, Row | None]]:
    match change.op, change.old, change.new:
        case "truncate", _, _:
            yield None, None
        case "move", (*old,), (*new,):
            yield tuple(old[:key]), None
            yield tuple(new[:key]), tuple(new)
        case _, (*old,), None:
            yield tuple(old[:key]), None
        case _, _, (*new,):
            yield tuple(new[:key]), tuple(new)
