"""The resyncs that a copy must still carry out. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState


def pending_resyncs(commands: Iterable[Command], table: str, control: ControlRecord | None) -> tuple[str, ...]:
    """The ids of the resync commands that were not executed for this table yet, oldest first: one copy executes all of
    them. None while the table is paused, whatever was requested first."""
    if control and control.state.name is TableState.PAUSED:
        return ()
    done = {control.state.command} if control and control.state.name is TableState.REPLICATING else set()
    requested = (one.id for one in commands if one.kind is CommandKind.RESYNC and one.names(table))
    return tuple(command for command in requested if command not in done)
