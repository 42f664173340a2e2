"""The state changes of ``pause`` and ``resume``. They need no Spark: a fence commit executes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.states import DROPPING, State, TableState, drops_copy, require_move

CHANGING_ROWS = {
    TableState.RESYNCING: ("is being copied again", "after the copy"),
    TableState.REWINDING: ("is being rewound", "after the rewind, or after a resync"),
}
"""States in which the rows may be those of another window than the cursor, what that means, and until when."""


@dataclass(frozen=True)
class TableStatus:
    """The current status of a table in the target. ``exists``: there is a table of this name, of any origin.
    ``first_copy``: the state of its first copy, if that is paused or blocked. ``foreign``: why it is left to another
    state store."""

    table: str
    target: str
    control: ControlRecord | None
    exists: bool = False
    first_copy: State | None = None
    foreign: Problem | None = None

    @property
    def state(self) -> TableState:
        if self.control:
            return self.control.state.name
        return self.first_copy.name if self.first_copy else TableState.PENDING


@dataclass(frozen=True)
class StateChange:
    """``state``: the new state; None if the table already has it, or if there is a ``refusal``."""

    table: str
    state: State | None = None
    refusal: Problem | None = None


def plan_state_changes(command: Command, tables: Sequence[TableStatus], at: str) -> tuple[StateChange, ...]:
    """One state change per table that the command names, in the order of ``tables``, followed by unknown names."""
    named = (_plan_state_change(command, status, at) for status in tables if command.names(status.table))
    return (*named, *unknown_tables(command, tables))


def unknown_tables(command: Command, tables: Sequence[TableStatus]) -> tuple[StateChange, ...]:
    known = {status.table for status in tables} | {one["table"] for one in command.ended_tables}
    return tuple(StateChange(name, refusal=_unknown(command, name)) for name in command.tables if name not in known)


def _plan_state_change(command: Command, status: TableStatus, at: str) -> StateChange:
    pauses = command.kind is CommandKind.PAUSE
    if status.foreign:
        return StateChange(status.table, refusal=status.foreign)
    if status.control and drops_copy(status.control.state):
        return StateChange(status.table, refusal=being_dropped(command, status.table))
    if status.control is None and (status.exists or not (pauses or status.first_copy)):
        return StateChange(status.table, refusal=no_copy(command, status))
    target_state = TableState.REPLICATING if status.control else TableState.PENDING
    target_state = TableState.PAUSED if pauses else target_state
    if status.state is target_state:
        return StateChange(status.table)
    if status.state in CHANGING_ROWS:
        return StateChange(status.table, refusal=_changing_rows(command, status))
    try:
        require_move(status.table, status.state, target_state)
    except CommandRefused as refused:
        return StateChange(status.table, refusal=refused.problems[0])
    return StateChange(
        status.table,
        State(target_state, at, _reason(command), _remedy(command, status), command.requested_by, command.id),
    )


def _reason(command: Command) -> str:
    reason = command.arguments.get("reason")
    return str(reason) if reason else f"{command.kind} by {command.requested_by}"


def _remedy(command: Command, status: TableStatus) -> str:
    if command.kind is CommandKind.PAUSE:
        return f"airflow cdc resume {command.replicator} --table {in_shell(status.table)}"
    return ""


def no_copy(command: Command, status: TableStatus) -> Problem:
    return Problem(
        "CMD003",
        f"{status.table} has no copy yet",
        where=status.table,
        found="pending",
        do=f"{command.kind} it after its first copy",
    )


def _changing_rows(command: Command, status: TableStatus) -> Problem:
    what, after = CHANGING_ROWS[status.state]
    return Problem(
        "CMD004",
        f"{status.table} {what}",
        where=status.table,
        found=status.state.value,
        do=f"{command.kind} it {after}",
    )


def being_dropped(command: Command, table: str) -> Problem:
    return Problem(
        "CMD004",
        f"{table} is being dropped",
        where=table,
        found=DROPPING,
        do=f"to keep its copy, set `dropped_tables: keep` for it; {command.kind} it after the next run",
    )


def _unknown(command: Command, name: str) -> Problem:
    replicator = command.replicator
    listed = f"airflow cdc status {replicator} lists its tables"
    do = f"{listed}; one that was added to the YAML is among them after the next run"
    return Problem("CMD005", f"{replicator} has no table {name}", where=name, do=do)
