"""Submits commands about tables. Pause, resume and rewind need no Spark: they are carried out at once."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.control.immediate_commands import IMMEDIATE, carry_out
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.own_tables import require_own_tables
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.errors import Retryable


def submit_command(
    replicator: Replicator, kind: CommandKind, tables: Sequence[str], arguments: dict[str, Any], key: str, by: str
) -> Command:
    """Store the command before any effect. ``key``: a second command with it is the first one; empty for none. Raises
    CommandRefused (CMD002) if the key belongs to another command, ForeignTarget (STA007) if no run would carry it
    out."""
    if kind not in IMMEDIATE:
        require_own_tables(replicator)
    command = replicator.state.request(replicator.name, kind, tables, arguments, key or str(uuid.uuid4()), by)
    return _carry_out_now(replicator, command, by) if kind in IMMEDIATE else command


def _carry_out_now(replicator: Replicator, command: Command, by: str) -> Command:
    """Commit the fence now, after those of earlier commands. If the target is unavailable, the command stays pending
    for the next run."""
    pending = [other for other in replicator.state.pending(replicator.name) if other.kind in IMMEDIATE]
    with contextlib.suppress(Retryable):
        carry_out(replicator, pending, known_tables(replicator), {}, by)
    return replicator.state.command(command.id) or command
