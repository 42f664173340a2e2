"""The commands that wait for a paused table, as `status` shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_cdc_provider.core.decisions.commands import RECORD_COMMANDS, Command, CommandKind
from airflow_cdc_provider.core.decisions.pending_resyncs import has_carried_out
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

AFTER_RESUME = RECORD_COMMANDS | {CommandKind.RESYNC}


def paused_tables(command: Command, rows: Iterable[TableRow]) -> tuple[str, ...]:
    """The tables that must be resumed before the command can be carried out for them."""
    if command.kind not in AFTER_RESUME or command.finished:
        return ()
    paused = [row for row in rows if row.state is TableState.PAUSED and command.names(row.table)]
    return tuple(row.table for row in paused if not (row.control and has_carried_out(row.control, command.id)))


def plain_command(command: Command, rows: Iterable[TableRow]) -> dict[str, Any]:
    """As plain JSON: the command line and the API print the same."""
    return {**to_plain(command), "waits_for": list(paused_tables(command, rows))}


def waiting_note(tables: Iterable[str]) -> str:
    """For an operator; empty without tables."""
    named = ", ".join(tables)
    return f"; paused, it waits for their resume: {named}" if named else ""
