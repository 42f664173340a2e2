"""Commands about tables that the YAML no longer selects, or whose target it no longer lists. Pure.

Such a command ends for them: otherwise it would be carried out, with its approval, when the table returns later.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.table.copies import source_table

LEFT = "the YAML no longer selects"


def left_tables(command: Command, decision: RunDecision, known: Iterable[str] = ()) -> tuple[str, ...]:
    """The tables that the command names and the run does not know. None if the command came after the decision of the
    run, or if the run could select no tables. A table that the YAML names and the source does not list now is waited
    for. ``known``: the tables of earlier runs, for a command about all tables."""
    if decision.stop or command.id not in decision.pending:
        return ()
    selected = {task.table for task in decision.plan.tables} | {new.table for new in decision.new}
    waited_for = {problem.where for problem in decision.unselected}
    if decision.replicator in waited_for:
        return ()
    return tuple(
        table
        for table in command.tables or known
        if command.names(table) and table not in selected and waited_for.isdisjoint((table, source_table(table)))
    )


def left_note(tables: Iterable[str]) -> str:
    """For an operator; empty without tables."""
    named = ", ".join(tables)
    return f"not carried out: {LEFT} {named}" if named else ""
