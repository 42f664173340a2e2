"""Two tables that every source transaction changes together, and readers that read both at one window.

Each table commits its windows independently; a published cut names one window and the version of each table at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

SEALED = 3


class Guard(StrEnum):
    SAME_WINDOW = "a cut is published only where both tables are at its window"
    NAMES_VERSIONS = "a reader takes the versions the cut names, not the newest"
    KEEPS_VERSIONS = "versions that the cut names are not removed"
    NEVER_BACK = "a cut is never replaced by an older one"


class Cut(NamedTuple):
    window: int
    versions: tuple[int, int]


class State(NamedTuple):
    """``tables``: the window of each version, per table. ``kept``: the oldest version of each table that still exists.
    ``pending``: the versions of both tables that each publisher has read. ``taken``, ``first``: the cut a reader took,
    the window it read of the first table."""

    tables: tuple[tuple[int, ...], tuple[int, ...]] = ((0,), (0,))
    kept: tuple[int, int] = (0, 0)
    pending: tuple[tuple[int, int], ...] = ()
    cut: Cut = Cut(0, (0, 0))
    taken: Cut | None = None
    first: int | None = None
    broken: str = ""


@dataclass(frozen=True)
class PublishedCut:
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        return State()

    def wrong(self, state: State) -> str:
        return state.broken

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for table in (0, 1):
            versions = state.tables[table]
            for window in range(versions[-1] + 1, min(versions[-1] + 2, SEALED) + 1):
                grown = _put(state.tables, table, (*versions, window))
                yield f"table {table} commits window {window}", state._replace(tables=grown)
            protected = min(state.cut.versions[table], *(read[table] for read in state.pending), len(versions) - 1)
            limit = protected if self.has(Guard.KEEPS_VERSIONS) else len(versions) - 1
            if state.taken is not None and self.has(Guard.KEEPS_VERSIONS):
                limit = min(limit, state.taken.versions[table])
            if state.kept[table] < limit:
                yield (
                    f"table {table} removes versions below {limit}",
                    state._replace(kept=_put(state.kept, table, limit)),
                )
        yield from self._publish(state)
        yield from self._read(state)

    def _publish(self, state: State) -> Iterator[tuple[str, State]]:
        """Two publishers may read the versions before either of them writes."""
        newest = (len(state.tables[0]) - 1, len(state.tables[1]) - 1)
        if len(state.pending) < 2 and newest not in state.pending:
            yield f"a publisher reads versions {newest}", state._replace(pending=(*state.pending, newest))
        for read in state.pending:
            left = state._replace(pending=tuple(other for other in state.pending if other != read))
            windows = (state.tables[0][read[0]], state.tables[1][read[1]])
            older = self.has(Guard.NEVER_BACK) and min(windows) <= state.cut.window
            if (windows[0] != windows[1] and self.has(Guard.SAME_WINDOW)) or older:
                yield "a publisher does not change the cut", left
                continue
            broken = "the published cut goes back" if min(windows) < state.cut.window else ""
            yield f"window {min(windows)} is published", left._replace(cut=Cut(min(windows), read), broken=broken)

    def _read(self, state: State) -> Iterator[tuple[str, State]]:
        if state.taken is None:
            yield f"a reader takes the cut at window {state.cut.window}", state._replace(taken=state.cut)
            return
        table = 0 if state.first is None else 1
        named = state.taken.versions[table]
        version = named if self.has(Guard.NAMES_VERSIONS) else len(state.tables[table]) - 1
        if version < state.kept[table]:
            yield (
                f"the reader asks for version {version} of table {table}",
                state._replace(broken="a version that the cut names is gone"),
            )
            return
        window = state.tables[table][version]
        if state.first is None:
            yield f"the reader sees window {window} of table 0", state._replace(first=window)
        else:
            broken = "" if window == state.first else f"the reader sees window {state.first} beside window {window}"
            yield f"the reader sees window {window} of table 1", state._replace(taken=None, first=None, broken=broken)


def _put(pair: tuple, at: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (value, pair[1]) if at == 0 else (pair[0], value)
