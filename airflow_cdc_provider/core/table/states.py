"""The states of a table and their transitions.

    new → pending → snapshotting → replicating ⇄ paused
    replicating → failing, blocked, resyncing, rewinding → replicating

| state | set by | stored in |
|---|---|---|
| new | a new table under a pattern, held back by `new_tables` | state store |
| pending | not set: the target has no table of this replicator | derived |
| snapshotting | the copy lane, while the first copy runs | state store |
| replicating | the commit of a first copy or of a key audit, or the end of a resync | target |
| paused | only an operator, and a run that drops the copy | target; staging while there is no copy |
| resyncing | pause_stream, or verify if rewritten rows differ | target |
| rewinding | the rewind command | target |
| failing | close_window: a retry can help | state store |
| blocked | a step: no retry can help | target; staging while there is no copy; else derived in each run |
| dropped | the definition no longer selects the table | state store |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.questions import Question


class TableState(StrEnum):
    NEW = "new"
    PENDING = "pending"
    SNAPSHOTTING = "snapshotting"
    REPLICATING = "replicating"
    PAUSED = "paused"
    RESYNCING = "resyncing"
    FAILING = "failing"
    BLOCKED = "blocked"
    REWINDING = "rewinding"
    DROPPED = "dropped"


S = TableState

MOVES: dict[TableState, frozenset[TableState]] = {
    S.NEW: frozenset({S.PENDING, S.SNAPSHOTTING, S.DROPPED}),
    S.PENDING: frozenset({S.SNAPSHOTTING, S.PAUSED, S.BLOCKED, S.DROPPED}),
    S.SNAPSHOTTING: frozenset({S.REPLICATING, S.PENDING, S.PAUSED, S.BLOCKED, S.FAILING, S.DROPPED}),
    S.REPLICATING: frozenset({S.PAUSED, S.RESYNCING, S.FAILING, S.BLOCKED, S.REWINDING, S.DROPPED}),
    S.PAUSED: frozenset({S.REPLICATING, S.PENDING, S.DROPPED}),
    S.RESYNCING: frozenset({S.REPLICATING, S.PAUSED, S.BLOCKED, S.FAILING, S.DROPPED}),
    S.FAILING: frozenset({S.REPLICATING, S.PAUSED, S.RESYNCING, S.BLOCKED, S.DROPPED}),
    S.BLOCKED: frozenset({S.REPLICATING, S.PENDING, S.RESYNCING, S.REWINDING, S.PAUSED, S.DROPPED}),
    S.REWINDING: frozenset({S.REPLICATING, S.RESYNCING, S.BLOCKED}),
    S.DROPPED: frozenset({S.PENDING}),
}

TAKES_CHANGES = frozenset({S.REPLICATING, S.FAILING})
"""States in which the stream lane may commit to the table."""

WITHOUT_COPY = frozenset({S.NEW, S.DROPPED})
"""States of tables that are not copied, or not any more."""

HOLDS_ACKNOWLEDGEMENT = frozenset({S.REPLICATING, S.FAILING})
"""States whose cursor limits the acknowledgement. Paused and blocked tables do not: the change log keeps their
windows."""


@dataclass(frozen=True)
class State:
    """A state with its history. ``since``: UTC in ISO 8601 format. ``command``: the id of the command that set it.
    ``version``: the target's version to which a rewinding table returns; None if that is not
    possible any more, and it waits for a new copy. ``question``: what a blocked table waits
    for. ``bad_records``: how many records stop it, which wait for decisions."""

    name: TableState
    since: str
    reason: str = ""
    remedy: str = ""
    set_by: str = ""
    command: str = ""
    version: int | None = None
    question: Question | None = None
    bad_records: int = 0


def replicating_again(state: State, at: str) -> State:
    """After a copy, or an audit of its keys."""
    return replace(state, name=TableState.REPLICATING, since=at, reason="", remedy="")


DROPPING = "the source dropped the table"


def dropping(at: str, run_id: str) -> State:
    """Of a copy that is about to be dropped."""
    return State(TableState.PAUSED, at, DROPPING, set_by=run_id)


def drops_copy(state: State) -> bool:
    """Whether a run has begun to drop the copy. Every other pause has a command."""
    return (state.name, state.reason, state.command) == (TableState.PAUSED, DROPPING, "")


def require_move(table: str, now: TableState, to: TableState) -> None:
    """Raise CommandRefused (CMD001) if a transition is not allowed. A transition to the same state is allowed."""
    if to is now or to in MOVES[now]:
        return
    raise CommandRefused.of(
        "CMD001",
        f"{table} cannot change from {now} to {to}",
        where=table,
        found=now,
        allowed=", ".join(sorted(MOVES[now])),
    )
