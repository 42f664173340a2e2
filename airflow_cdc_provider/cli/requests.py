"""``pause``, ``resume``, ``rewind``, ``resync``, ``verify``: requests, written down before anything happens.

Pause, resume and rewind need no Spark: their fences are committed at once. The others wait for a run; ``--now`` starts
one and ``--wait`` follows the request to its end.
"""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import find, named, opened, operator
from airflow_cdc_provider.cli.runs import follow, require_startable, start_run
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.requests import AT_ONCE, carry_out
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import Problem, Retryable


@command
def pause(args: argparse.Namespace) -> Answer:
    return _request(CommandKind.PAUSE, args)


@command
def resume(args: argparse.Namespace) -> Answer:
    return _request(CommandKind.RESUME, args)


@command
def rewind(args: argparse.Namespace) -> Answer:
    return _request(CommandKind.REWIND, args, to=args.to)


@command
def resync(args: argparse.Namespace) -> Answer:
    return _request(CommandKind.RESYNC, args, approve_deletes=args.yes)


@command
def verify(args: argparse.Namespace) -> Answer:
    return _request(CommandKind.VERIFY, args)


def _request(kind: CommandKind, args: argparse.Namespace, **arguments: Any) -> Answer:
    replicator = opened(find(args.name))
    targets = known_tables(replicator)
    tables = named(replicator, args.table, targets) if targets else tuple(args.table)
    if args.now:
        require_startable(replicator.name)
    arguments = {**arguments, **({"reason": args.reason} if args.reason else {})}
    asked = replicator.state.request(
        replicator.name, kind, tables, arguments, args.key or str(uuid.uuid4()), operator()
    )
    if kind in AT_ONCE:
        asked = _at_once(replicator, asked, targets)
    run_id = start_run(replicator.name) if args.now and not asked.finished else ""
    if args.wait:
        asked = follow(replicator, asked, run_id)
    return _answer(asked)


def _at_once(replicator: Replicator, asked: Command, targets: dict[str, str]) -> Command:
    """Commit the fence now, behind those of earlier requests. Where the target does not answer, the request waits for
    the next run."""
    waiting = [one for one in replicator.state.pending(replicator.name) if one.kind in AT_ONCE]
    wanted = {table: target for table, target in targets.items() if any(one.names(table) for one in waiting)}
    try:
        carry_out(replicator, waiting, targets, {}, operator())
        now = {table: replicator.target.state(table, target).control for table, target in wanted.items()}
    except Retryable:
        return _again(replicator, asked)
    replicator.state.change_tables(
        replicator.name,
        lambda before: [current_row(t, wanted[t], one, before.get(t), utc_now()) for t, one in now.items() if one],
    )
    return _again(replicator, asked)


def _again(replicator: Replicator, asked: Command) -> Command:
    return replicator.state.command(asked.id) or asked


def _answer(asked: Command) -> Answer:
    body = {
        "id": asked.id,
        "key": asked.key,
        "kind": asked.kind.value,
        "status": asked.status.value,
        "outcome": asked.outcome,
        "run_id": asked.run_id,
        **asked.result,
    }
    if not asked.finished:
        return Answer(body, lines=[f"{asked.kind} is requested; the next run carries it out (request {asked.id})"])
    problems = []
    code = a.OK
    if asked.status is CommandStatus.FAILED:
        problems = [Problem("CMD007", f"{asked.kind} could not be done", where=asked.replicator, found=asked.outcome)]
        code = a.DATA
    if asked.kind is CommandKind.VERIFY:
        return Answer(body, _compared(asked), [asked.outcome], problems, code or int(not asked.result.get("identical")))
    return Answer(body, lines=[asked.outcome], problems=problems, code=code)


def _compared(asked: Command) -> OutputTable:
    columns = ("table", "rows at source", "rows in target", "identical", "changes applied", "fresh at", "problem")
    rows = [
        (
            table["table"],
            table["source_rows"],
            table["target_rows"],
            "yes" if table["identical"] else "no",
            ", ".join(f"{count:,} {kind}" for kind, count in sorted(table["changes"].items())),
            table["fresh_at"],
            table["problem"],
        )
        for table in asked.result.get("tables", [])
    ]
    return OutputTable(columns, rows)
