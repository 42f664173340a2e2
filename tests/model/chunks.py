"""A copy that is not exact: it reads two rows one after the other while the source changes, then catches up.

Events 1 and 3 change row 0, events 2 and 4 row 1. The value of a row is the number of the last event that changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

EVENTS = 4


class Guard(StrEnum):
    ANCHOR_FIRST = "the anchor is taken before the first row is read"
    ROWS_CARRY_THE_ANCHOR = "a copied row has the order of the anchor, not of its reading"
    CHUNK_WITH_ROWS = "a chunk is recorded as read in the commit that contains its rows"
    CATCHES_UP_FIRST = "the table is published after it has passed the end of the reading"


class State(NamedTuple):
    """``rows``: value and order of each copied row, None where it is not copied yet. ``chunks``: how many are read.
    ``high``: the event of the source at the last read. ``cursor``: the last event applied."""

    happened: int = 0
    anchor: int | None = None
    chunks: int = 0
    rows: tuple[tuple[int, int] | None, ...] = (None, None)
    high: int | None = None
    cursor: int = 0
    published: bool = False


@dataclass(frozen=True)
class Chunks:
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        return State()

    def wrong(self, state: State) -> str:
        if not state.published:
            return ""
        values = tuple(row[0] if row else None for row in state.rows)
        expected = (value(0, state.cursor), value(1, state.cursor))
        return "" if values == expected else f"published at event {state.cursor}: {values}, the source has {expected}"

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        if state.happened < EVENTS:
            yield f"event {state.happened + 1} happens", state._replace(happened=state.happened + 1)
        if state.anchor is None:
            if self.has(Guard.ANCHOR_FIRST) or state.chunks == 2:
                taken = state._replace(anchor=state.happened, cursor=state.happened)
                yield f"the anchor is taken at event {state.happened}", taken
        elif state.high is not None:
            yield from self._catch_up(state)
        if state.chunks < 2 and (state.anchor is not None or not self.has(Guard.ANCHOR_FIRST)):
            yield from self._read(state)

    def _read(self, state: State) -> Iterator[tuple[str, State]]:
        number = state.chunks
        order = state.anchor if state.anchor is not None and self.has(Guard.ROWS_CARRY_THE_ANCHOR) else EVENTS
        rows = tuple(
            (value(number, state.happened), order) if one == number else row for one, row in enumerate(state.rows)
        )
        recorded = state._replace(chunks=number + 1, high=state.happened if number == 1 else None)
        yield f"chunk {number} is read at event {state.happened} and committed", recorded._replace(rows=rows)
        if not self.has(Guard.CHUNK_WITH_ROWS):
            yield f"chunk {number} is recorded, the attempt dies before its rows are committed", recorded

    def _catch_up(self, state: State) -> Iterator[tuple[str, State]]:
        assert state.high is not None
        if not state.published and (state.cursor >= state.high or not self.has(Guard.CATCHES_UP_FIRST)):
            yield "the table is published", state._replace(published=True)
        if state.cursor < state.happened:
            event = state.cursor + 1
            changed = (event - 1) % 2
            rows = tuple(
                (event, event) if one == changed and row is not None and row[1] < event else row
                for one, row in enumerate(state.rows)
            )
            yield f"event {event} is applied", state._replace(cursor=event, rows=rows)


def value(row: int, event: int) -> int:
    """The value of a row of the source after an event."""
    return max([0, *(one for one in range(1, event + 1) if (one - 1) % 2 == row)])
