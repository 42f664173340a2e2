"""The resyncs that a copy must still carry out. Pure.

The control record of a copy names the commands that it has carried out, so that a later pause or question of this copy
does not repeat them while they wait for another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState

AFTER_COPY = frozenset({TableState.REPLICATING, TableState.PAUSED, TableState.BLOCKED})
"""States in which no copy is being made."""


def open_resyncs(commands: Iterable[Command], table: str) -> tuple[str, ...]:
    """The ids of the resync commands about this table, oldest first. A copy that begins now carries out all of them."""
    return tuple(one.id for one in commands if one.kind is CommandKind.RESYNC and one.names(table))


def has_carried_out(control: ControlRecord, command: str) -> bool:
    """Records of former versions name the command only until the next change of the state."""
    state = control.state
    return command in control.resyncs or (state.name is TableState.REPLICATING and state.command == command)


def is_carried_out(command: Command, copies: Mapping[str, TableTask]) -> bool:
    """Whether a resync only has to be finished, since the run that made its last copy has died. ``copies``: all of the
    replicator."""
    named = [task for table, task in copies.items() if command.names(table)]
    unknown = set(command.tables) - command.ended.keys() - copies.keys()
    if command.kind is not CommandKind.RESYNC or not named or unknown:
        return False
    return all(
        task.state in AFTER_COPY and task.control is not None and has_carried_out(task.control, command.id)
        for task in named
    )


def pending_resyncs(commands: Iterable[Command], table: str, control: ControlRecord | None) -> tuple[str, ...]:
    """Those that were not carried out yet. None while the table is paused, whatever was requested first."""
    if control and control.state.name is TableState.PAUSED:
        return ()
    requested = open_resyncs(commands, table)
    return tuple(command for command in requested if not (control and has_carried_out(control, command)))
