"""Ends commands for tables that the YAML no longer selects."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.left_tables import LEFT, left_note, left_tables
from airflow_cdc_provider.core.decisions.run_decision import RunDecision


def end_left_commands(replicator: Replicator, decision: RunDecision, known: Iterable[str]) -> None:
    """A command that names other tables, too, goes on for these. ``known``: the tables of earlier runs."""
    known = tuple(known)
    for command in replicator.state.pending(replicator.name):
        left = left_tables(command, decision, known)
        if not left:
            continue
        ended = {**command.ended, **dict.fromkeys(left, LEFT)}
        if set(command.tables) - ended.keys() or not command.tables:
            replicator.state.note_progress(command.id, {**command.result, "ended": ended})
        else:
            body = {"tables": [{"table": table, "problem": f"{LEFT} it"} for table in left]}
            replicator.state.finish(command.id, left_note(command.tables), body, failed=True)
