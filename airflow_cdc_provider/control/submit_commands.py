"""Submits commands about tables. Pause, resume and rewind need no Spark: they are carried out at once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.control.immediate_commands import IMMEDIATE, carry_out
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.paused_copies import paused_copies, row_of_copy
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.errors import Retryable
from airflow_cdc_provider.core.times import utc_now


def submit_command(
    replicator: Replicator, kind: CommandKind, tables: Sequence[str], arguments: dict[str, Any], key: str, by: str
) -> Command:
    """Store the command before any effect. ``key``: a second command with it is the first one; empty for none. Raises
    CommandRefused (CMD002) if the key belongs to another command."""
    command = replicator.state.request(replicator.name, kind, tables, arguments, key or str(uuid.uuid4()), by)
    return _carry_out_now(replicator, command, by) if kind in IMMEDIATE else command


def _carry_out_now(replicator: Replicator, command: Command, by: str) -> Command:
    """Commit the fence now, after those of earlier commands. If the target is unavailable, the command stays pending
    for the next run."""
    targets = known_tables(replicator)
    pending = [other for other in replicator.state.pending(replicator.name) if other.kind in IMMEDIATE]
    affected = {table: target for table, target in targets.items() if any(other.names(table) for other in pending)}
    try:
        carry_out(replicator, pending, targets, {}, by)
        _update_rows(replicator, affected)
    except Retryable:
        pass
    return replicator.state.command(command.id) or command


def _update_rows(replicator: Replicator, affected: Mapping[str, str]) -> None:
    controls = {table: replicator.targets.state(table, target).control for table, target in affected.items()}
    paused = paused_copies(replicator, [table for table, control in controls.items() if control is None])
    replicator.state.change_tables(
        replicator.name,
        lambda before: [
            current_row(table, affected[table], control, before.get(table), utc_now())
            if control
            else row_of_copy(before[table], paused.get(table))
            for table, control in controls.items()
            if control or table in before
        ],
    )
