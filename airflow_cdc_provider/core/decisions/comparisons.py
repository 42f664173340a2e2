"""Which tables a run compares with their source. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.table_decisions import TableAction, TableDecision
from airflow_cdc_provider.core.proof.schedule import DueComparison
from airflow_cdc_provider.core.spec.history import History

COMPARABLE = frozenset({TableAction.STREAM, TableAction.COPY, TableAction.RECONCILE, TableAction.COPYING})
"""A table is compared, now or after its copy."""


@dataclass(frozen=True)
class Comparisons:
    """``commands``: the ids of those that requested it; ``futile``: of those that end without it, since none of their
    tables takes changes or is being copied. ``repaired``: the tables whose differing rows are repaired.
    ``sampled``: those of which some rows are compared, those after a key."""

    tables: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    futile: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    sampled: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def requested(self) -> bool:
        return bool(self.tables)


def decide_comparisons(facts: Facts, decisions: Sequence[TableDecision]) -> Comparisons:
    """A command compares all tables in the stream, as a whole. Else those are compared whose rows were rewritten, and
    those that are due."""
    stream = [decision for decision in decisions if decision.action is TableAction.STREAM]
    requested = [command for command in facts.commands if command.kind is CommandKind.VERIFY]
    commands = [command for command in requested if any(command.names(one.table) for one in stream)]
    comparable = [decision for decision in decisions if decision.action in COMPARABLE]
    futile = [command for command in requested if not any(command.names(one.table) for one in comparable)]
    due = {
        table.task.table: table.due
        for table in facts.tables
        if table.due and not facts.stream.lost and table.task.rule.history is not History.LOG
    }
    repairing = [command for command in commands if command.arguments.get("repair")]
    compared = [one for one in stream if commands or one.compare or one.table in due]
    repaired = {one.table for one in compared if (found := due.get(one.table)) and found.repair}
    repaired |= {one.table for one in compared if any(command.names(one.table) for command in repairing)}
    return Comparisons(
        tuple(one.table for one in compared),
        tuple(command.id for command in commands),
        tuple(command.id for command in futile),
        tuple(one.table for one in compared if one.table in repaired),
        {one.table: found.after for one in compared if (found := _sample(one, commands, due.get(one.table)))},
    )


def _sample(decision: TableDecision, commands: Sequence[Command], due: DueComparison | None) -> DueComparison | None:
    return due if due and due.sampled and not (commands or decision.compare) else None
