"""The commit rule on Delta, whose only condition is: a number not above the recorded one is skipped without an error.

One table, two windows of two events each, all sealed. *Writers* stage the log after the cursor and merge it; a *copier*
copies the table again at event 3, in the middle of window 2; *fences* pause, resume, take over, resync. Each of them
may stop between two steps while the others continue, die, or be tried again. A user may restore the first version of
the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.table.control_record import split_token, token
from airflow_cdc_provider.core.table.states import TAKES_CHANGES
from tests.model.delta_state import (
    ENDS,
    FIRST,
    LAST,
    OTHER,
    PAUSED,
    RESYNCING,
    RUNNING,
    Actor,
    Batch,
    Names,
    Record,
    State,
)

MERGING = ("checked", "named", "named again")


class Guard(StrEnum):
    FENCE_IN_THE_TOKEN = "the token contains the fence above the window"
    ONE_APP_ID = "one app id for all fences"
    FENCE_GROWS = "a commit that does not move the window raises the fence"
    FENCE_IS_CONDITIONAL = "a fence is conditional on the version from which its record was copied"
    FENCE_PASSES_ALL = "a fence is above every number ever named or recorded"
    FENCE_HAS_ONE_OWNER = "a copy stops where another attempt has named its fence or a higher one"
    TAKEOVER_FENCES = "an attempt that finds a running one raises the fence first"
    BATCH_FITS_CURSOR = "a batch is merged only where it begins at the cursor"
    BATCH_FITS_FENCE = "a batch is merged only under the fence under which it was staged"
    WORKS_UNDER_ITS_FENCE = "an attempt works only under the fence it started with"
    TAKEN_NAME_FENCES = "a token that is named already belongs to the attempt that named it"
    READS_BACK = "an attempt relies on the table, not on the answer"
    STATE_IN_THE_TABLE = "the pause is recorded in the table"
    RESTORE_IS_SEEN = "a restored table continues from its restored record"
    COPY_COUNTS_FIRST = "a copy takes its fence before it reads the state of the table"
    NO_RESTORE_MEANWHILE = "no table is restored between the check and the commit of a merge"


@dataclass(frozen=True)
class DeltaCommits:
    """``writers``: how many attempts may begin. ``events``: fences, copies and restores that may happen, each once."""

    writers: int
    events: tuple[str, ...] = ()
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        names = Names(((token(1, 0), OTHER),))
        return State(self._token(1, 0), FIRST, (), 0, False, False, names, (), 0, self.events, "")

    def wrong(self, state: State) -> str:
        if state.broken:
            return state.broken
        record = state.record
        if state.data != tuple(range(1, max(record.floor, ENDS[record.window]) + 1)):
            return f"window {record.window} after copy {record.floor} holds the events {state.data}"
        if record.attempt != record.committed_by:
            return "the change log names another attempt than the one that committed"
        if not state.actors and not self._heals(state):
            return "no writer can bring this table to the end of the log"
        return ""

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        yield from self._begin(state)
        for event in state.left:
            yield from self._happen(state, event)
        for actor in state.actors:
            others = _without(state.actors, actor)
            for text, after in self._go_on(state._replace(actors=others), actor):
                yield f"{_name(actor)}: {text}", after
            yield f"{_name(actor)}: dies, and its end is seen", state._replace(actors=others)
            if actor.at in ("named", "answered") and actor.kind == "writer" and self._may_begin(state, others):
                again = Actor("writer", "staged", state.nonces + 1, batch=actor.batch)
                text = f"{_name(actor)}: dies, its end is seen, its merge is tried again as {_name(again)}"
                yield text, _with(state._replace(actors=others, nonces=state.nonces + 1), again)

    def _begin(self, state: State) -> Iterable[tuple[str, State]]:
        if self._may_begin(state, state.actors) and self._may_stream(state):
            actor = Actor("writer", "started", state.nonces + 1, start_fence=state.record.fence)
            yield f"{_name(actor)}: begins", _with(state._replace(nonces=state.nonces + 1), actor)

    def _may_begin(self, state: State, others: tuple[Actor, ...]) -> bool:
        """A writer begins where no other may still write, or all others are shut out."""
        alive = any(actor.kind != "fence" and not actor.out for actor in others)
        return state.nonces < self.writers and (not alive or not self.has(Guard.TAKEOVER_FENCES))

    def _may_stream(self, state: State) -> bool:
        seen = state.record.state in TAKES_CHANGES
        return seen and not (state.restored and self.has(Guard.RESTORE_IS_SEEN))

    def _happen(self, state: State, event: str) -> Iterable[tuple[str, State]]:
        left = state._replace(left=tuple(other for other in state.left if other != event))
        if event == "restore":
            merging = any(actor.kind == "writer" and actor.at in MERGING for actor in state.actors)
            if state.version and not (merging and self.has(Guard.NO_RESTORE_MEANWHILE)):
                yield (
                    "a user restores the first version of the table",
                    left._replace(record=FIRST, data=(), restored=True, paused=False, version=state.version + 1)
                    if self.has(Guard.RESTORE_IS_SEEN)
                    else left._replace(data=(), version=state.version + 1),
                )
        elif event == "copy":
            if state.record.state is RESYNCING:
                actor = Actor(
                    "copy", "started", 8, start_fence=state.record.fence, number=state.names.highest_fence + 1
                )
                yield "copy: begins", _with(left, actor)
        elif self._sense(state, event):
            if event == "pause" and not self.has(Guard.STATE_IN_THE_TABLE):
                yield "pause: recorded in the state store", left._replace(paused=True)
            else:
                actor = Actor("fence", event, record=state.record, version=state.version)
                yield f"{event}: reads version {state.version}", _with(left, actor)

    def _sense(self, state: State, event: str) -> bool:
        match event:
            case "pause":
                return state.record.state is not PAUSED
            case "resume":
                return state.record.state is PAUSED
            case "resync":
                return state.record.state is RUNNING
            case "resynced":
                return state.record.state is RESYNCING and state.record.floor > 0
            case "fence the restored":
                return state.restored
            case _:
                return any(actor.kind != "fence" and not actor.out for actor in state.actors)

    def _go_on(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        match actor.kind, actor.at:
            case "fence", _:
                yield self._fence(state, actor)
            case "copy", "started":
                yield from self._read_source(state, actor)
            case "copy", "read":
                yield self._claim(state, actor)
            case "writer", "started":
                yield from self._stage(state, actor)
            case "writer", "staged":
                yield from self._check(state, actor)
            case "writer", "checked":
                yield self._take_name(state, actor)
            case _, "named" | "named again":
                yield from self._commit(state, actor)
            case _, "answered":
                yield self._read_back(state, actor)

    # Fences

    def _fence(self, state: State, actor: Actor) -> tuple[str, State]:
        if self.has(Guard.FENCE_IS_CONDITIONAL) and state.version != actor.version:
            return "finds another version and stops", state
        assert actor.record is not None
        states = {"pause": PAUSED, "resume": RUNNING, "resync": RESYNCING, "resynced": RUNNING}
        record = actor.record._replace(
            state=states.get(actor.at, actor.record.state), attempt=OTHER, committed_by=OTHER
        )
        record, names = self._raised(state, record)
        after = state._replace(
            token=self._token(record.fence, record.window),
            record=record,
            names=names,
            version=state.version + 1,
            restored=False,
            paused=actor.at == "pause" or (state.paused and actor.at != "resume"),
            broken=_back(state, record) or state.broken,
        )
        if actor.at == "take over":
            after = after._replace(actors=tuple(one._replace(out=True) for one in state.actors))
        return f"commits fence {record.fence}, {record.state}, window {record.window}", after

    def _raised(self, state: State, record: Record) -> tuple[Record, Names]:
        """As ``ControlRecord.fenced`` and the target's ``fence`` number it."""
        if not self.has(Guard.FENCE_GROWS):
            return record, state.names
        passed = record.fence
        if self.has(Guard.FENCE_PASSES_ALL):
            passed = max(passed, split_token(state.token)[0], state.names.highest_fence)
        record = record._replace(fence=passed + 1)
        return record, state.names.add(token(record.fence, record.window), record.attempt)

    # Writers

    def _stage(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        record = state.record
        if not self._may_stream(state) or (self.has(Guard.WORKS_UNDER_ITS_FENCE) and record.fence != actor.start_fence):
            yield "may not stage and ends", state
            return
        for hi in range(record.window + 1, LAST + 1):
            batch = Batch(record.fence, record.floor, record.window, hi)
            yield (
                f"stages the windows after {batch.lo} up to {hi}",
                _with(state, actor._replace(at="staged", batch=batch)),
            )

    def _check(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        record, batch = state.record, actor.batch
        assert batch is not None
        fits = self._may_stream(state)
        fits = fits and (record.window == batch.lo or not self.has(Guard.BATCH_FITS_CURSOR))
        fits = fits and (record.fence == batch.fence or not self.has(Guard.BATCH_FITS_FENCE))
        if not fits:
            yield "finds its batch void and ends", state
            return
        yield "checks its batch", _with(state, actor._replace(at="checked", record=record, version=state.version))

    def _take_name(self, state: State, actor: Actor) -> tuple[str, State]:
        batch, record = actor.batch, actor.record
        assert batch is not None and record is not None
        name = token(record.fence, batch.hi)
        if state.names.owner(name) is None:
            named = actor._replace(at="named", token=self._token(record.fence, batch.hi), number=record.fence)
            return "names its commit", _with(state._replace(names=state.names.add(name, actor.nonce)), named)
        if not self.has(Guard.TAKEN_NAME_FENCES):
            named = actor._replace(at="named", token=self._token(record.fence, batch.hi), number=record.fence)
            return "commits under the name it finds", _with(state, named)
        if state.version != actor.version:
            return "finds its name taken and the table changed, and ends", state
        fence, names = self._raised(state, record._replace(attempt=OTHER, committed_by=OTHER))
        number = fence.fence + (batch.hi == fence.window)
        names = names.add(token(number, batch.hi), actor.nonce)
        named = actor._replace(at="named", token=self._token(number, batch.hi), number=number)
        raised = state._replace(
            token=self._token(fence.fence, fence.window), record=fence, names=names, version=state.version + 1
        )
        return f"finds its name taken and raises the fence to {fence.fence}", _with(raised, named)

    def _commit(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        if actor.at == "named" and actor.kind == "writer":
            yield "loses its request, reads the table, and tries again", _with(state, actor._replace(at="named again"))
        if not self._admits(state, actor):
            yield "is skipped without an error", _with(state, actor._replace(at="answered"))
            return
        record, data = self._written(state, actor)
        broken = _back(state, record)
        if state.paused:
            broken = "a data commit to a paused table"
        if actor.out:
            broken = "a commit of an attempt that was shut out"
        after = state._replace(
            token=actor.token, record=record, data=data, version=state.version + 1, restored=False, broken=broken
        )
        yield f"commits window {record.window}", _with(after, actor._replace(at="answered", effect=True))
        if actor.at == "named" and actor.kind == "writer":
            lost = actor._replace(at="named again", effect=True)
            yield f"commits window {record.window}, loses the answer, and tries again", _with(after, lost)

    def _admits(self, state: State, actor: Actor) -> bool:
        """The only condition of Delta."""
        if not self.has(Guard.ONE_APP_ID) and split_token(actor.token)[0] != split_token(state.token)[0]:
            return True
        return actor.token > state.token

    def _written(self, state: State, actor: Actor) -> tuple[Record, tuple[int, ...]]:
        batch = actor.batch
        assert batch is not None
        if actor.kind == "copy":
            assert actor.record is not None
            record = Record(actor.number, batch.hi, batch.floor, actor.record.state, actor.nonce, actor.nonce)
            return record, tuple(range(1, batch.floor + 1))
        named = state.names.owner(token(actor.number, batch.hi))
        record = state.record._replace(
            fence=actor.number,
            window=batch.hi,
            attempt=actor.nonce if named is None else named,
            committed_by=actor.nonce,
        )
        events = tuple(event for event in range(ENDS[batch.lo] + 1, ENDS[batch.hi] + 1) if event > batch.floor)
        return record, state.data + events

    def _read_back(self, state: State, actor: Actor) -> tuple[str, State]:
        ours = state.record.attempt == actor.nonce and state.token == actor.token
        done = ours if self.has(Guard.READS_BACK) else True
        broken = "reported as done, but never committed" if done and not actor.effect else state.broken
        return "ends well" if done else "finds another commit and ends", state._replace(broken=broken)

    # Copies

    def _read_source(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        fits = state.record.state is RESYNCING
        if not fits or (self.has(Guard.WORKS_UNDER_ITS_FENCE) and state.record.fence != actor.start_fence):
            yield "may not copy and ends", state
            return
        # The source is in the middle of window 2 until that is sealed.
        window, floor = (1, 3) if state.record.window < LAST else (LAST, ENDS[LAST])
        copied = Batch(state.record.fence, floor, window, window)
        yield (
            "reads the table and the source",
            _with(state, actor._replace(at="read", record=state.record, batch=copied)),
        )

    def _claim(self, state: State, actor: Actor) -> tuple[str, State]:
        """As ``claim_fence``: an attempt that has named this fence or a higher one started later."""
        number = actor.number
        if not self.has(Guard.COPY_COUNTS_FIRST):
            number = state.names.highest_fence + 1
        assert actor.batch is not None
        name = token(number, actor.batch.hi)
        taken = state.names.owner(name) is not None
        if self.has(Guard.FENCE_HAS_ONE_OWNER):
            taken = taken or state.names.highest_fence >= number
        if taken:
            return "finds its fence taken and ends", state
        named = actor._replace(at="named", number=number, token=self._token(number, actor.batch.hi))
        return f"claims fence {number}", _with(state._replace(names=state.names.add(name, actor.nonce)), named)

    def _token(self, fence: int, window: int) -> int:
        return token(fence, window) if self.has(Guard.FENCE_IN_THE_TOKEN) else window

    def _heals(self, state: State) -> bool:
        """Whether a takeover, a resume and one undisturbed writer bring the table to the end of the log."""
        record = state.record._replace(state=RUNNING, attempt=OTHER, committed_by=OTHER)
        fence, names = self._raised(state, record)
        if fence.window == LAST:
            return True
        calm = state._replace(
            token=self._token(fence.fence, fence.window), record=fence, names=names, restored=False, paused=False
        )
        if split_token(state.token)[0] >= fence.fence and self.has(Guard.FENCE_IN_THE_TOKEN):
            calm = calm._replace(token=state.token)
        batch = Batch(fence.fence, fence.floor, fence.window, LAST)
        writer = Actor("writer", "named", 9, batch=batch, number=fence.fence, token=self._token(fence.fence, LAST))
        return self._admits(calm, writer)


def _back(state: State, record: Record) -> str:
    back = record.window < state.record.window or record.fence < state.record.fence
    return "the cursor or the fence goes back" if back and not state.restored else ""


def _with(state: State, actor: Actor) -> State:
    return state._replace(actors=tuple(sorted((*state.actors, actor), key=lambda one: (one.kind, one.nonce, one.at))))


def _without(actors: tuple[Actor, ...], actor: Actor) -> tuple[Actor, ...]:
    at = actors.index(actor)
    return actors[:at] + actors[at + 1 :]


def _name(actor: Actor) -> str:
    return f"writer {actor.nonce}" if actor.kind == "writer" else actor.at if actor.kind == "fence" else "copy"
