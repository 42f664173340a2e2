"""The commit rule on Delta, whose only condition is: a number not above the recorded one is skipped, silently.

One table, two windows of two events each, all sealed. *Writers* stage the log behind the cursor and merge it; a
*copier* copies the table again at event 3, in the middle of window 2; *fences* pause, resume, take over, resync. Any of
them may stand still between two steps while the others go on, die, or be tried again. Somebody may take the table back
to its first version.
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
    PAUSED,
    RESYNCING,
    RUNNING,
    SOMEBODY,
    Actor,
    Batch,
    Names,
    Record,
    State,
)

MERGING = ("checked", "named", "named again")


class Guard(StrEnum):
    FENCE_IN_THE_TOKEN = "the token holds the fence above the window"
    ONE_APP_ID = "one app id for all fences"
    FENCE_GROWS = "a commit that does not move the window raises the fence"
    FENCE_IS_CONDITIONAL = "a fence is conditional on the version its record was copied from"
    FENCE_PASSES_ALL = "a fence passes every number that was ever named or recorded"
    FENCE_HAS_ONE_OWNER = "a copy gives up where anybody has named its fence or a higher one"
    TAKEOVER_FENCES = "who finds a living attempt raises the fence first"
    BATCH_FITS_CURSOR = "a batch is merged only where it begins at the cursor"
    BATCH_FITS_FENCE = "a batch is merged only under the fence it was staged under"
    WORKS_AS_TOLD = "an attempt works only under the fence it was told"
    TAKEN_NAME_FENCES = "a token that is named already is left to who named it"
    READS_BACK = "an attempt believes the table, not the answer"
    STATE_IN_THE_TABLE = "the pause stands in the table"
    RESTORE_IS_SEEN = "a table that was taken back counts from there"
    COPY_COUNTS_FIRST = "a copy takes its fence before it looks at the table's state"
    NO_RESTORE_MEANWHILE = "nobody takes a table back while a merge of it has checked and not yet committed"


@dataclass(frozen=True)
class DeltaCommits:
    """``writers``: how many attempts may begin. ``events``: fences, copies and restores that may happen, each once."""

    writers: int
    events: tuple[str, ...] = ()
    without: Guard | None = None

    def has(self, guard: Guard) -> bool:
        return guard is not self.without

    def start(self) -> State:
        names = Names(((token(1, 0), SOMEBODY),))
        return State(self._token(1, 0), FIRST, (), 0, False, False, names, (), 0, self.events, "")

    def wrong(self, state: State) -> str:
        if state.broken:
            return state.broken
        record = state.record
        if state.data != tuple(range(1, max(record.floor, ENDS[record.window]) + 1)):
            return f"window {record.window} after copy {record.floor} holds the events {state.data}"
        if record.by != record.really:
            return "the change log names another attempt than the one that committed"
        if not state.actors and not self._heals(state):
            return "nobody can bring this table to the end of the log any more"
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
                told = f"{_name(actor)}: dies, its end is seen, its merge is tried again as {_name(again)}"
                yield told, _with(state._replace(actors=others, nonces=state.nonces + 1), again)

    def _begin(self, state: State) -> Iterable[tuple[str, State]]:
        if self._may_begin(state, state.actors) and self._may_stream(state):
            actor = Actor("writer", "told", state.nonces + 1, told=state.record.fence)
            yield f"{_name(actor)}: begins", _with(state._replace(nonces=state.nonces + 1), actor)

    def _may_begin(self, state: State, others: tuple[Actor, ...]) -> bool:
        """A writer begins where no other may still write, or all of them are shut out."""
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
                    "somebody takes the table back to its first version",
                    left._replace(record=FIRST, data=(), restored=True, paused=False, version=state.version + 1)
                    if self.has(Guard.RESTORE_IS_SEEN)
                    else left._replace(data=(), version=state.version + 1),
                )
        elif event == "copy":
            if state.record.state is RESYNCING:
                actor = Actor("copy", "told", 8, told=state.record.fence, number=state.names.highest_fence + 1)
                yield "copy: begins", _with(left, actor)
        elif self._sense(state, event):
            if event == "pause" and not self.has(Guard.STATE_IN_THE_TABLE):
                yield "pause: noted in the state store", left._replace(paused=True)
            else:
                actor = Actor("fence", event, record=state.record, version=state.version)
                yield f"{event}: looks at version {state.version}", _with(left, actor)

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
            case "copy", "told":
                yield from self._look(state, actor)
            case "copy", "looked":
                yield self._claim(state, actor)
            case "writer", "told":
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
            return "finds another version and gives up", state
        assert actor.record is not None
        states = {"pause": PAUSED, "resume": RUNNING, "resync": RESYNCING, "resynced": RUNNING}
        record = actor.record._replace(state=states.get(actor.at, actor.record.state), by=SOMEBODY, really=SOMEBODY)
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
        return record, state.names.add(token(record.fence, record.window), record.by)

    # Writers

    def _stage(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        record = state.record
        if not self._may_stream(state) or (self.has(Guard.WORKS_AS_TOLD) and record.fence != actor.told):
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
            return "finds its name taken and the table moved, and ends", state
        fence, names = self._raised(state, record._replace(by=SOMEBODY, really=SOMEBODY))
        number = fence.fence + (batch.hi == fence.window)
        names = names.add(token(number, batch.hi), actor.nonce)
        named = actor._replace(at="named", token=self._token(number, batch.hi), number=number)
        raised = state._replace(
            token=self._token(fence.fence, fence.window), record=fence, names=names, version=state.version + 1
        )
        return f"finds its name taken and raises the fence to {fence.fence}", _with(raised, named)

    def _commit(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        if actor.at == "named" and actor.kind == "writer":
            yield "loses its request, looks, and tries again", _with(state, actor._replace(at="named again"))
        if not self._admits(state, actor):
            yield "is skipped, silently", _with(state, actor._replace(at="answered"))
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
        """All that Delta knows."""
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
            fence=actor.number, window=batch.hi, by=actor.nonce if named is None else named, really=actor.nonce
        )
        news = tuple(event for event in range(ENDS[batch.lo] + 1, ENDS[batch.hi] + 1) if event > batch.floor)
        return record, state.data + news

    def _read_back(self, state: State, actor: Actor) -> tuple[str, State]:
        ours = state.record.by == actor.nonce and state.token == actor.token
        done = ours if self.has(Guard.READS_BACK) else True
        broken = "said to be done, but never committed" if done and not actor.effect else state.broken
        return "ends well" if done else "finds somebody else and ends", state._replace(broken=broken)

    # Copies

    def _look(self, state: State, actor: Actor) -> Iterable[tuple[str, State]]:
        fits = state.record.state is RESYNCING
        if not fits or (self.has(Guard.WORKS_AS_TOLD) and state.record.fence != actor.told):
            yield "may not copy and ends", state
            return
        """The source stands in the middle of window 2 until that is sealed."""
        window, floor = (1, 3) if state.record.window < LAST else (LAST, ENDS[LAST])
        copied = Batch(state.record.fence, floor, window, window)
        yield "looks and reads the source", _with(state, actor._replace(at="looked", record=state.record, batch=copied))

    def _claim(self, state: State, actor: Actor) -> tuple[str, State]:
        """As ``claim_fence``: somebody who has named this fence or a higher one came later."""
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
        """Take over, resume, and one undisturbed writer: is the table at the end of the log then?"""
        record = state.record._replace(state=RUNNING, by=SOMEBODY, really=SOMEBODY)
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
