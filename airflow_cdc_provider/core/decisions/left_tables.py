"""Commands about tables that left: the YAML no longer selects them or lists their target, or the source no longer lists
them and a pattern of the YAML selects them. Pure.

Such a command ends for them: otherwise it would be carried out, with its approval, when the table returns later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.listed_tables import rule_that_selects
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.spec.definition import Definition

UNSELECTED = "the YAML no longer selects"
UNLISTED = "the source no longer lists"
LEFT = (UNSELECTED, UNLISTED)


def left_tables(command: Command, decision: RunDecision, known: Iterable[str] = ()) -> tuple[str, ...]:
    """The tables that the command names and the run does not know. None if the command came after the decision of the
    run, or if the run could select no tables. A table that the YAML names and the source does not list now is waited
    for. ``known``: the tables of earlier runs, for a command about all tables."""
    if decision.stop or command.id not in decision.pending:
        return ()
    selected = {task.table for task in decision.plan.tables} | {new.table for new in decision.new}
    named = [table for table in command.tables or known if command.names(table) and table not in selected]
    return tuple(table for table in named if decision.why_unselected(table) is None)


def why_left(definition: Definition, table: str) -> str:
    """One of ``LEFT``."""
    return UNLISTED if rule_that_selects(definition, table) else UNSELECTED


def left_note(left: Mapping[str, str]) -> str:
    """For an operator. ``left``: by table, one of ``LEFT``."""
    by_reason = {why: ", ".join(table for table, its in left.items() if its == why) for why in LEFT}
    return "; ".join(f"not carried out: {why} {tables}" for why, tables in by_reason.items() if tables)
