"""``airflow cdc plan NAME``: what the next run would do. Nothing is done."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.answer import Answer, Listing
from airflow_cdc_provider.cli.finding import find, opened
from airflow_cdc_provider.cli.running import command
from airflow_cdc_provider.control.outlook import outlook
from airflow_cdc_provider.core.commands import Command
from airflow_cdc_provider.core.decide import Decision
from airflow_cdc_provider.core.plain import to_plain


@command
def plan(args: argparse.Namespace) -> Answer:
    replicator = opened(find(args.name))
    ahead = outlook(replicator)
    facts, decision = ahead.facts, ahead.decision
    verdicts = [{"table": v.table, "does": v.move.value, "because": v.reason} for v in decision.verdicts]
    body = {
        "replicator": replicator.name,
        "follows": list(decision.follow),
        "tables": verdicts,
        "requests": [{"id": c.id, "kind": c.kind.value, "tables": list(c.tables)} for c in facts.commands],
        "notes": list(decision.notes),
        "stop": to_plain(decision.stop),
    }
    rows = [(row["table"], row["does"], row["because"]) for row in verdicts]
    problems = [v.problem for v in decision.verdicts if v.problem]
    return Answer(body, Listing(("table", "does", "because"), rows), _lines(decision, facts.commands), problems)


def _lines(decision: Decision, commands: tuple[Command, ...]) -> list[str]:
    lines = [*decision.notes]
    if decision.reopen:
        lines.append("the stream is opened first")
    if decision.idle is not None:
        lines.append("nothing new for these tables: an empty window lets the source forget what it keeps")
    lines += [f"request: {request.kind}" for request in commands]
    roads = [task for task in decision.follow if task != "close_window"]
    lines.append(f"steps: {', '.join(roads)}" if roads else "steps: none")
    return lines
