"""``airflow cdc plan NAME``: what the next run would do. Nothing is done."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import find, opened
from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.serde import to_plain


@command
def plan(args: argparse.Namespace) -> Answer:
    replicator = opened(find(args.name))
    ahead = dry_run(replicator)
    facts, decision = ahead.facts, ahead.decision
    verdicts = [{"table": v.table, "does": v.action.value, "because": v.reason} for v in decision.table_decisions]
    body = {
        "replicator": replicator.name,
        "follows": list(decision.follow),
        "tables": verdicts,
        "requests": [{"id": c.id, "kind": c.kind.value, "tables": list(c.tables)} for c in facts.commands],
        "notes": list(decision.notes),
        "stop": to_plain(decision.stop),
    }
    rows = [(row["table"], row["does"], row["because"]) for row in verdicts]
    problems = [v.problem for v in decision.table_decisions if v.problem]
    return Answer(body, OutputTable(("table", "does", "because"), rows), _lines(decision, facts.commands), problems)


def _lines(decision: RunDecision, commands: tuple[Command, ...]) -> list[str]:
    lines = [*decision.notes]
    if decision.reopen:
        lines.append("the stream is opened first")
    if decision.idle is not None:
        lines.append("nothing new for these tables: an empty window lets the source forget what it keeps")
    lines += [f"request: {request.kind}" for request in commands]
    roads = [task for task in decision.follow if task != "close_window"]
    lines.append(f"steps: {', '.join(roads)}" if roads else "steps: none")
    return lines
