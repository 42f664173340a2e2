"""Ends commands for tables that left the YAML or the source."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import CARRIED_OUT
from airflow_cdc_provider.core.decisions.left_tables import left_tables, why_left
from airflow_cdc_provider.core.decisions.pending_resyncs import has_carried_out
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.table.state_rows import TableRow


def end_left_commands(replicator: Replicator, decision: RunDecision, known: Mapping[str, TableRow]) -> None:
    """A command goes on for its other tables. ``known``: the tables of earlier runs."""
    for command in replicator.state.pending(replicator.name):
        left = left_tables(command, decision, known)
        if not left:
            continue
        controls = {table: known[table].control for table in left if table in known}
        carried_out = {table for table, control in controls.items() if control and has_carried_out(control, command.id)}
        ended = {
            table: CARRIED_OUT if table in carried_out else why_left(replicator.definition, table) for table in left
        }
        replicator.state.note_progress(command.id, {**command.result, "ended": {**command.ended, **ended}})
