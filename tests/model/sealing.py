"""The change log: several attempts land windows of a stream whose source discards acknowledged events.

Four events; an attempt reads one or two of them after the last window it has read. A table applies the windows in
turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

EVENTS = 4


class Guard(StrEnum):
    FIRST_SEAL_STANDS = "a window that is sealed is never sealed again"
    JOINS_ON = "a window begins where the previous one ended"
    ACKNOWLEDGES_SEALED = "only sealed events are acknowledged"
    LOST_IS_REPORTED = "a position that is no longer served stops the stream"


class Attempt(NamedTuple):
    """It read the events in ``(lo, hi]`` for ``window``. ``read``: those of them that the source still had."""

    number: int
    window: int
    lo: int
    hi: int = 0
    read: tuple[int, ...] = ()


class State(NamedTuple):
    """``log``: the events of each window. ``discarded``: the source serves later events only. ``applied``: the windows
    as the table read them."""

    log: tuple[tuple[int, ...], ...] = ()
    ends: tuple[int, ...] = ()
    discarded: int = 0
    attempts: tuple[Attempt, ...] = ()
    begun: int = 0
    applied: tuple[tuple[int, ...], ...] = ()
    source_fault: bool = True


@dataclass(frozen=True)
class Sealing:
    without: Guard | None = None
    attempts: int = 4

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        return State()

    def wrong(self, state: State) -> str:
        landed = tuple(event for window in state.log for event in window)
        if landed != tuple(range(1, (state.ends or (0,))[-1] + 1)):
            return f"the log holds the events {landed} up to {state.ends[-1]}"
        if state.applied != state.log[: len(state.applied)]:
            return "a window changed after a table had applied it"
        if state.source_fault and state.discarded > len(landed):
            return f"event {state.discarded} was acknowledged and is in no window"
        return ""

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        if state.begun < self.attempts and len(state.attempts) < 3:
            one = Attempt(state.begun + 1, len(state.log) + 1, (state.ends or (0,))[-1])
            yield f"attempt {one.number} begins window {one.window}", _with(state._replace(begun=one.number), one)
        for one in state.attempts:
            others = state._replace(attempts=tuple(other for other in state.attempts if other != one))
            for text, after in self._read(others, one) if not one.hi else self._seal(others, one):
                yield f"attempt {one.number} {text}", after
        if len(state.applied) < len(state.log):
            applied = (*state.applied, state.log[len(state.applied)])
            yield f"the table applies window {len(applied)}", state._replace(applied=applied)
        if state.log and state.discarded < state.ends[-1]:
            yield f"event {state.ends[-1]} is acknowledged", state._replace(discarded=state.ends[-1])
        if state.source_fault and state.discarded < EVENTS:
            lost = state._replace(discarded=state.discarded + 1, source_fault=False)
            yield f"the source loses event {lost.discarded}", lost

    def _read(self, state: State, one: Attempt) -> Iterator[tuple[str, State]]:
        if one.lo < state.discarded and self.has(Guard.LOST_IS_REPORTED):
            yield "gets the error that its position is no longer served", state
            return
        for hi in range(one.lo + 1, min(one.lo + 2, EVENTS) + 1):
            read = tuple(event for event in range(one.lo + 1, hi + 1) if event > state.discarded)
            after = _with(state, one._replace(hi=hi, read=read))
            if not self.has(Guard.ACKNOWLEDGES_SEALED):
                after = after._replace(discarded=max(state.discarded, hi))
            yield f"reads the events {read} up to {hi}", after

    def _seal(self, state: State, one: Attempt) -> Iterator[tuple[str, State]]:
        sealed = one.window <= len(state.log)
        if sealed and self.has(Guard.JOINS_ON) and self.has(Guard.FIRST_SEAL_STANDS):
            yield f"adopts window {one.window}", state
        elif sealed and self.has(Guard.JOINS_ON):
            at = one.window - 1
            log = (*state.log[:at], one.read, *state.log[one.window :])
            ends = (*state.ends[:at], one.hi, *state.ends[one.window :])
            yield f"seals window {one.window} again", state._replace(log=log, ends=ends)
        else:
            number = len(state.log) + 1
            after = state._replace(log=(*state.log, one.read), ends=(*state.ends, one.hi))
            yield f"seals window {number}: {one.read}", after


def _with(state: State, one: Attempt) -> State:
    return state._replace(attempts=tuple(sorted((*state.attempts, one))))
