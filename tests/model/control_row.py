"""The commit rule of targets that can compare: ``UPDATE … WHERE cursor = :lo AND fence = :f`` in the transaction of the
data.

Three windows of one event each, two attempts at a time, each of which may stop between any two steps or die; an
operator who pauses, resumes and rewinds, a second Airflow that takes the table over, lost answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from airflow_cdc_provider.core.decisions.run_decision import acknowledgeable
from airflow_cdc_provider.core.table.states import TableState

SEALED = 3
RUNNING, PAUSED = TableState.REPLICATING, TableState.PAUSED


class Guard(StrEnum):
    CURSOR_IN_THE_COMMIT = "the commit requires the cursor at which the batch begins"
    FENCE_IN_THE_COMMIT = "the commit requires the fence under which the batch was staged"
    CHECKED_WITHIN = "the conditions are checked inside the commit, not before it"
    CURSOR_WITH_DATA = "cursor and data change in one commit"
    PAUSE_FENCES = "a pause is a commit that raises the fence"
    REWIND_FENCES = "a rewind raises the fence"
    WORKS_UNDER_ITS_FENCE = "an attempt works only under the fence it started with"
    READS_BACK = "after a lost answer the table is read"
    UNKNOWN_DELETES_NOTHING = "after a lost answer nothing is deleted"
    ACKNOWLEDGES_LAST = "only windows that the table contains are acknowledged"
    ONE_OWNER = "an attempt that does not own the table stops"


class Attempt(NamedTuple):
    """``rewinds``: the number of rewinds before it staged. ``effect``: its commit is in the table."""

    number: int
    owner: str
    fence: int
    at: str = "begun"
    lo: int = 0
    hi: int = 0
    rewinds: int = 0
    effect: bool = False


class State(NamedTuple):
    """``stored_cursor``: the cursor in the state store. ``left``: the events that may still happen."""

    cursor: int = 0
    fence: int = 1
    state: TableState = RUNNING
    owner: str = "ours"
    data: tuple[int, ...] = ()
    stored_cursor: int = 0
    paused: bool = False
    acknowledged: int = 0
    rewinds: int = 0
    attempts: tuple[Attempt, ...] = ()
    begun: int = 0
    left: tuple[str, ...] = ()
    broken: str = ""


@dataclass(frozen=True)
class ControlRow:
    attempts: int = 3
    events: tuple[str, ...] = ()
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        return State(left=self.events)

    def wrong(self, state: State) -> str:
        if state.broken:
            return state.broken
        expected = tuple(range(1, state.cursor + 1))
        if state.data != expected and self.has(Guard.CURSOR_WITH_DATA):
            return f"window {state.cursor} holds the events {state.data}"
        return "an event is applied twice" if len(set(state.data)) < len(state.data) else ""

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        if state.begun < self.attempts and len(state.attempts) < 2:
            for owner in {"ours", state.owner}:
                if owner == state.owner or not self.has(Guard.ONE_OWNER):
                    one = Attempt(state.begun + 1, owner, state.fence)
                    yield f"attempt {one.number} of {owner} begins", _with(state._replace(begun=one.number), one)
        for event in state.left:
            yield from self._happen(state._replace(left=tuple(e for e in state.left if e != event)), event)
        for one in state.attempts:
            others = state._replace(attempts=tuple(other for other in state.attempts if other != one))
            for text, after in self._go_on(others, one):
                yield f"attempt {one.number} {text}", after

    def _happen(self, state: State, event: str) -> Iterator[tuple[str, State]]:
        fenced = state._replace(fence=state.fence + 1)
        if event == "pause" and not state.paused:
            in_the_table = fenced._replace(state=PAUSED) if self.has(Guard.PAUSE_FENCES) else state
            yield "the operator pauses", in_the_table._replace(paused=True)
        elif event == "resume" and state.paused:
            yield "the operator resumes", fenced._replace(state=RUNNING, paused=False)
        elif event == "rewind" and state.cursor and self.has(Guard.CURSOR_WITH_DATA):
            base = fenced if self.has(Guard.REWIND_FENCES) else state
            # Acknowledged windows are in the log.
            rewound = base._replace(cursor=0, data=(), acknowledged=0, rewinds=state.rewinds + 1)
            yield "the operator rewinds to window 0", rewound
        elif event == "take over" and state.owner == "ours":
            yield "another Airflow takes the table over", fenced._replace(owner="theirs")

    def _go_on(self, state: State, one: Attempt) -> Iterator[tuple[str, State]]:
        match one.at:
            case "begun":
                lo = state.cursor if self.has(Guard.CURSOR_WITH_DATA) else state.stored_cursor
                under_its_fence = state.fence == one.fence or not self.has(Guard.WORKS_UNDER_ITS_FENCE)
                if (
                    state.state is RUNNING
                    and under_its_fence
                    and not (state.paused and not self.has(Guard.PAUSE_FENCES))
                ):
                    for hi in range(lo + 1, min(lo + 2, SEALED) + 1):
                        staged = one._replace(at="staged", lo=lo, hi=hi, fence=state.fence, rewinds=state.rewinds)
                        yield f"stages the windows after {lo} up to {hi}", _with(state, staged)
            case "staged":
                if not self.has(Guard.ACKNOWLEDGES_LAST):
                    state = self._acknowledged(state, one.hi)
                if self.has(Guard.CHECKED_WITHIN):
                    yield from self._commit(state, one, self._fits(state, one))
                elif self._fits(state, one):
                    yield "checks cursor and fence", _with(state, one._replace(at="checked"))
            case "checked":
                yield from self._commit(state, one, fits=True)
            case "committed":
                stored = state._replace(stored_cursor=max(state.stored_cursor, one.hi))
                yield "stores its cursor and acknowledges", self._acknowledged(stored, stored.cursor)
            case "unknown":
                yield from self._read_back(state, one)

    def _fits(self, state: State, one: Attempt) -> bool:
        cursor = state.cursor == one.lo or not self.has(Guard.CURSOR_IN_THE_COMMIT)
        cursor = cursor or not self.has(Guard.CURSOR_WITH_DATA)
        return cursor and (state.fence == one.fence or not self.has(Guard.FENCE_IN_THE_COMMIT))

    def _commit(self, state: State, one: Attempt, fits: bool) -> Iterator[tuple[str, State]]:
        yield "loses its request", _with(state, one._replace(at="unknown"))
        if not fits:
            yield "is rejected and ends", state
            return
        broken = "a data commit to a paused table" if state.paused else ""
        if one.owner != state.owner:
            broken = "a commit of an Airflow that does not own the table"
        if one.rewinds < state.rewinds:
            broken = broken or "rows from before the rewind"
        if one.fence < state.fence:
            broken = broken or "a commit of an attempt that was shut out"
        after = state._replace(data=state.data + tuple(range(one.lo + 1, one.hi + 1)), cursor=one.hi, broken=broken)
        yield f"commits window {one.hi}", _with(after, one._replace(at="committed", effect=True))
        yield f"commits window {one.hi} and loses the answer", _with(after, one._replace(at="unknown", effect=True))

    def _read_back(self, state: State, one: Attempt) -> Iterator[tuple[str, State]]:
        if not self.has(Guard.UNKNOWN_DELETES_NOTHING):
            broken = "the table refers to files that were deleted" if one.effect else ""
            yield "deletes what it wrote", state._replace(broken=broken)
        elif not self.has(Guard.READS_BACK):
            yield "assumes that its commit succeeded", self._acknowledged(state, one.hi)
        elif one.effect and state.cursor == one.hi:
            yield "finds its commit", self._acknowledged(state, state.cursor)
        elif (state.cursor, state.fence) == (one.lo, one.fence):
            yield "finds the table unchanged and tries again", _with(state, one._replace(at="staged"))
        else:
            yield "finds another commit and ends", state

    def _acknowledged(self, state: State, believed: int) -> State:
        """``believed``: the cursor that the attempt assumes."""
        window = acknowledgeable(SEALED, [(state.state, believed, believed + 1 if believed < SEALED else None)])
        if state.state is RUNNING and window > state.cursor:
            return state._replace(broken=f"window {window} is acknowledged, the cursor of the table is {state.cursor}")
        return state._replace(acknowledged=max(state.acknowledged, window))


def _with(state: State, one: Attempt) -> State:
    return state._replace(attempts=tuple(sorted((*state.attempts, one))))
