"""One record whose stream has a gap: the gap makes its key dirty, the record is fetched, held events follow.

The events of the record: 1 writes both columns, 2 writes ``y`` and is lost in a gap, 3 and 4 write ``x``. Each is
delivered in a window of its own, after it happened. The value of a column is the number of the last event that wrote
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

LAST, GAP = 4, 2


class Guard(StrEnum):
    GAP_MARKS = "a gap makes the key dirty"
    HOLDS = "events of a dirty key are held, not dropped"
    SUPERSEDES = "held events older than the fetched record are not applied"
    REMEMBERS = "events older than the fetched record that are delivered after it are not applied"
    ONE_COMMIT = "the flag is cleared by the commit that contains the data"


class Row(NamedTuple):
    x: int
    y: int


class State(NamedTuple):
    """``happened`` and ``delivered``: events so far at the source and in the table. ``since``: the event of the fetched
    row; 0 where it was never fetched."""

    happened: int = 1
    delivered: int = 1
    row: Row = Row(1, 1)
    dirty: bool = False
    held: tuple[int, ...] = ()
    fetched: int = 0
    since: int = 0
    broken: str = ""


@dataclass(frozen=True)
class DirtyKeys:
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        return State()

    def wrong(self, state: State) -> str:
        if state.broken:
            return state.broken
        if not state.dirty and not state.held and _older(state.row, at(state.delivered)):
            return f"the key counts as clean at event {state.delivered} and holds {state.row}"
        return ""

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        if state.happened < LAST:
            yield f"event {state.happened + 1} happens", state._replace(happened=state.happened + 1)
        if state.delivered < state.happened:
            yield self._deliver(state._replace(delivered=state.delivered + 1))
        if state.dirty and state.fetched < state.happened:
            yield f"the record is fetched as of event {state.happened}", state._replace(fetched=state.happened)
        if state.dirty and state.fetched:
            yield from self._save(state)

    def _deliver(self, state: State) -> tuple[str, State]:
        event = state.delivered
        if event == GAP:
            seen = event <= state.since
            return "a gap is delivered", state._replace(dirty=not seen and self.has(Guard.GAP_MARKS))
        if state.dirty:
            held = (*state.held, event) if self.has(Guard.HOLDS) else state.held
            return f"event {event} is delivered and held", state._replace(held=held)
        if event <= state.since and self.has(Guard.REMEMBERS):
            return f"event {event} is delivered, the fetched record is newer", state
        return f"event {event} is delivered and applied", _applied(state, event)

    def _save(self, state: State) -> Iterator[tuple[str, State]]:
        clean = state._replace(dirty=False, fetched=0)
        if not self.has(Guard.ONE_COMMIT):
            yield "the flag is cleared, the attempt dies before it saves", clean._replace(held=())
        saved = clean._replace(row=at(state.fetched), since=state.fetched, held=())
        if _older(saved.row, state.row):
            saved = saved._replace(broken="the record goes back")
        for event in state.held:
            if event > state.fetched or not self.has(Guard.SUPERSEDES):
                saved = _applied(saved, event)
        yield f"the record of event {state.fetched} is saved, {len(state.held)} held events follow", saved


def at(event: int) -> Row:
    """The record after an event."""
    return Row(max(one for one in (1, 3, 4) if one <= event), max(one for one in (1, 2) if one <= event))


def _applied(state: State, event: int) -> State:
    broken = "the record goes back" if event < state.row.x else state.broken
    return state._replace(row=state.row._replace(x=event), broken=broken)


def _older(row: Row, than: Row) -> bool:
    return row.x < than.x or row.y < than.y
