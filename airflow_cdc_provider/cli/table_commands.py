"""``pause``, ``resume``, ``rewind``, ``resync``, ``verify``: commands, stored in the state store before any effect.

Pause, resume and rewind need no Spark: their fences are committed at once. The others wait for a run; ``--now``
triggers one, and ``--wait`` waits until the command has finished.
"""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definition, open_with_connections, require_tables
from airflow_cdc_provider.cli.runs import follow_command, require_runnable_dag
from airflow_cdc_provider.control.immediate_commands import IMMEDIATE, carry_out
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.paused_copies import paused_copies, row_of_copy
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.errors import Problem, Retryable

TO_SECONDS = len("2024-02-29T12:34:56")


@cli_command
def pause(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.PAUSE, args)


@cli_command
def resume(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.RESUME, args)


@cli_command
def rewind(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.REWIND, args, to=args.to)


@cli_command
def resync(args: argparse.Namespace) -> CommandOutput:
    return _submit(CommandKind.RESYNC, args, approve_deletes=args.yes)


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
    command = replicator.state.request(
        replicator.name, kind, tables, arguments, args.key or str(uuid.uuid4()), current_user()
    )
    if kind in IMMEDIATE:
        command = _carry_out_now(replicator, command, targets)
    return _command_output(follow_command(args, replicator, command))


def _carry_out_now(replicator: Replicator, command: Command, targets: dict[str, str]) -> Command:
    """Commit the fence now, after those of earlier commands. If the target is unavailable, the command stays pending
    for the next run."""
    pending = [other for other in replicator.state.pending(replicator.name) if other.kind in IMMEDIATE]
    affected = {table: target for table, target in targets.items() if any(other.names(table) for other in pending)}
    try:
        carry_out(replicator, pending, targets, {}, current_user())
        controls = {table: replicator.targets.state(table, target).control for table, target in affected.items()}
        paused = paused_copies(replicator, [table for table, control in controls.items() if control is None])
    except Retryable:
        return _reread(replicator, command)
    replicator.state.change_tables(
        replicator.name,
        lambda before: [
            current_row(table, affected[table], control, before.get(table), utc_now())
            if control
            else row_of_copy(before[table], paused.get(table))
            for table, control in controls.items()
            if control or table in before
        ],
    )
    return _reread(replicator, command)


def _reread(replicator: Replicator, command: Command) -> Command:
    return replicator.state.command(command.id) or command


def _command_output(command: Command) -> CommandOutput:
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
            body, lines=[f"submitted {command.kind}; the next run carries it out (command {command.id})"]
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
