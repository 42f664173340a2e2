"""``pause``, ``resume``, ``rewind``, ``resync``, ``verify``: commands, stored in the state store before any effect.

Pause, resume and rewind need no Spark: their fences are committed at once. The others wait for a run; ``--now``
triggers one, and ``--wait`` waits until the command has finished.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definition, open_with_connections, require_tables
from airflow_cdc_provider.cli.runs import follow_command
from airflow_cdc_provider.cli.typed_name import confirm_by_name
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.waiting_commands import waiting_note, waiting_tables
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag

TO_SECONDS = len("2024-02-29T12:34:56")


@cli_command
def pause(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.PAUSE, args)


@cli_command
def resume(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.RESUME, args)


@cli_command
def rewind(args: argparse.Namespace) -> CommandOutput:
    confirm_by_name(args, find_definition(args.name).name, "the rewind")
    return _submit(CommandKind.REWIND, args, to=args.to)


@cli_command
def resync(args: argparse.Namespace) -> CommandOutput:
    """Without ``--yes``, a copy that would delete too many rows waits."""
    approved = args.yes is not None
    if approved:
        confirm_by_name(args, find_definition(args.name).name, "the deletion of rows")
    return _submit(CommandKind.RESYNC, args, approve_deletes=approved)


@cli_command
def verify(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.VERIFY, args, repair=args.repair)


def _submit(kind: CommandKind, args: argparse.Namespace, **arguments: Any) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    targets = known_tables(replicator)
    tables = require_tables(replicator, args.table, targets) if targets else tuple(args.table)
    if args.now:
        require_runnable_dag(replicator.name)
    arguments = {**arguments, **({"reason": args.reason} if args.reason else {})}
    command = submit_command(replicator, kind, tables, arguments, args.key or "", current_user())
    command = follow_command(args, replicator, command)
    return _command_output(command, waiting_tables(command, replicator.state.tables(replicator.name).values()))


def _command_output(command: Command, waiting: Sequence[str]) -> CommandOutput:
    """``waiting``: the tables for whose resume it waits."""
    body = {
        "id": command.id,
        "key": command.key,
        "kind": command.kind.value,
        "status": command.status.value,
        "outcome": command.outcome,
        "run_id": command.run_id,
        **command.result,
    }
    if not command.finished:
        return CommandOutput(
            {**body, "waits_for": list(waiting)},
            lines=[
                f"submitted {command.kind}; the next run carries it out (command {command.id}){waiting_note(waiting)}"
            ],
        )
    problems = []
    code = exit_codes.OK
    if command.status is CommandStatus.FAILED:
        problems = [Problem("CMD007", f"{command.kind} failed", where=command.replicator, found=command.outcome)]
        code = exit_codes.DATA
    if command.kind is CommandKind.VERIFY:
        code = code or (exit_codes.OK if command.result.get("identical") else exit_codes.DIFFERENT)
        return CommandOutput(body, _comparison_table(command), [command.outcome], problems, code)
    return CommandOutput(body, lines=[command.outcome], problems=problems, code=code)


def _comparison_table(command: Command) -> OutputTable:
    columns = (
        "table",
        "rows at source",
        "rows in target",
        "identical",
        "keys that differ",
        "repaired",
        "changes applied",
        "fresh at",
        "problem",
    )
    rows = [
        (
            table["table"],
            table["source_rows"],
            table["target_rows"],
            "yes" if table["identical"] else "no",
            table["differing"] or "",
            table["repaired"] or "",
            ", ".join(f"{count:,} {kind}" for kind, count in sorted(table["changes"].items()) if count),
            table["fresh_at"][:TO_SECONDS].replace("T", " "),
            table["problem"] or table["not_repaired"],
        )
        for table in command.result.get("tables", [])
    ]
    return OutputTable(columns, rows)
