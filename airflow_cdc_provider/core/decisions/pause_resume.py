"""What ``pause`` and ``resume`` ask of each table. They need no Spark: a fence commit carries them out at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState, require_move


@dataclass(frozen=True)
class TableStatus:
    """A table as it stands in the target now."""

    table: str
    target: str
    control: ControlRecord | None

    @property
    def state(self) -> TableState:
        return self.control.state.name if self.control else TableState.PENDING


@dataclass(frozen=True)
class StateChange:
    """The state a table is to be fenced into; None where it is in that state already, or the ``refusal`` why not."""

    table: str
    state: State | None = None
    refusal: Problem | None = None


def plan_state_changes(command: Command, tables: Sequence[TableStatus], at: str) -> tuple[StateChange, ...]:
    """One order per table the command names, in the order of ``tables``; unknown names come last."""
    named = (_order(command, standing, at) for standing in tables if command.names(standing.table))
    return (*named, *unknown_tables(command, tables))


def unknown_tables(command: Command, tables: Sequence[TableStatus]) -> tuple[StateChange, ...]:
    known = {standing.table for standing in tables}
    return tuple(StateChange(name, refusal=_unknown(command, name)) for name in command.tables if name not in known)


def _order(command: Command, standing: TableStatus, at: str) -> StateChange:
    if standing.control is None:
        return StateChange(standing.table, refusal=no_copy(command, standing))
    wanted = TableState.PAUSED if command.kind is CommandKind.PAUSE else TableState.REPLICATING
    if standing.state is wanted:
        return StateChange(standing.table)
    if standing.state is TableState.RESYNCING:
        return StateChange(standing.table, refusal=_copying(command, standing))
    try:
        require_move(standing.table, standing.state, wanted)
    except CommandRefused as refused:
        return StateChange(standing.table, refusal=refused.problems[0])
    return StateChange(
        standing.table,
        State(wanted, at, _reason(command), _remedy(command, standing), command.requested_by, command.id),
    )


def _reason(command: Command) -> str:
    told = command.arguments.get("reason")
    return str(told) if told else f"{command.kind} by {command.requested_by}"


def _remedy(command: Command, standing: TableStatus) -> str:
    if command.kind is CommandKind.PAUSE:
        return f"airflow cdc resume {command.replicator} --table {standing.table}"
    return ""


def no_copy(command: Command, standing: TableStatus) -> Problem:
    return Problem(
        "CMD003",
        f"{standing.table} has no copy yet",
        where=standing.table,
        found="pending",
        do=f"{command.kind} it after its first copy",
    )


def _copying(command: Command, standing: TableStatus) -> Problem:
    return Problem(
        "CMD004",
        f"{standing.table} is being copied again",
        where=standing.table,
        found="resyncing",
        do=f"{command.kind} it when the copy is done",
    )


def _unknown(command: Command, name: str) -> Problem:
    return Problem("CMD005", f"{command.replicator} has no table {name}", where=name)
