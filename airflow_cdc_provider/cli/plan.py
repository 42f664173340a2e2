"""``airflow cdc plan NAME``: shows what the next run would do. Reads only."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import find_definition, open_with_connections
from airflow_cdc_provider.control.dry_run import dry_run, plain_plan
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.run_decision import RunDecision


@cli_command
def plan(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    preview = dry_run(replicator)
    facts, decision = preview.facts, preview.decision
    body = plain_plan(preview)
    rows = [(row["table"], row["action"], row["reason"]) for row in body["tables"]]
    problems = [v.problem for v in decision.table_decisions if v.problem]
    return CommandOutput(
        body, OutputTable(("table", "action", "reason"), rows), _lines(decision, facts.commands), problems
    )


def _lines(decision: RunDecision, commands: tuple[Command, ...]) -> list[str]:
    lines = [*decision.notes]
    if decision.reopen:
        lines.append("opens the stream first")
    if decision.idle is not None:
        lines.append("no changes for these tables: seals an empty window, so that the source can discard its log")
    lines += [f"command: {command.kind}" for command in commands]
    steps = [task for task in decision.follow if task != "close_window"]
    lines.append(f"steps: {', '.join(steps)}" if steps else "steps: none")
    return lines
