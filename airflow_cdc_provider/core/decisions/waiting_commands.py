"""The commands that wait for a paused or blocked table, as `status` shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS, Command, CommandKind
from airflow_cdc_provider.core.decisions.pending_resyncs import has_carried_out
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

WAITS_IN = {
    CommandKind.RESYNC: frozenset({TableState.PAUSED}),
    **dict.fromkeys(RECORD_COMMANDS, frozenset({TableState.PAUSED, TableState.BLOCKED})),
}
"""The states in which a table must be resumed before a command of the kind is carried out for it."""


def waiting_tables(command: Command, rows: Iterable[TableRow]) -> tuple[str, ...]:
    """The tables that must be resumed before the command can be carried out for them."""
    if command.kind not in WAITS_IN or command.finished:
        return ()
    states = WAITS_IN[command.kind]
    waiting = [row for row in _open(command, rows) if row.state in states and _stored_state(row) in states]
    return tuple(row.table for row in waiting)


def _stored_state(row: TableRow) -> TableState:
    """A block that each run derives anew is only shown: it ends without a resume, and a resume does not end it."""
    return row.control.state.name if row.control else row.state


def needs_resume(command: Command, rows: Iterable[TableRow]) -> tuple[str, ...]:
    """As ``waiting_tables``, if no run can carry the command out for another table before; else empty."""
    rows = tuple(rows)
    waiting = waiting_tables(command, rows)
    unknown = {table for table in command.tables if command.names(table)} - {row.table for row in rows}
    return waiting if len(waiting) == len(_open(command, rows)) and not unknown else ()


def _open(command: Command, rows: Iterable[TableRow]) -> list[TableRow]:
    named = [row for row in rows if command.names(row.table)]
    return [row for row in named if not (row.control and has_carried_out(row.control, command.id))]


def plain_command(command: Command, rows: Iterable[TableRow]) -> dict[str, Any]:
    """As plain JSON: the command line and the API print the same."""
    return {**to_plain(command), "waits_for": list(waiting_tables(command, rows))}


def waiting_note(tables: Iterable[str]) -> str:
    """For an operator; empty without tables."""
    named = ", ".join(tables)
    return f"; it waits until these are resumed: {named}" if named else ""
