"""``airflow cdc quarantine list|show|replay|discard``: shows bad records and submits decisions about them."""

from __future__ import annotations

import argparse
import json
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pendulum

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definition, open_with_connections, require_tables
from airflow_cdc_provider.cli.runs import follow_command
from airflow_cdc_provider.cli.typed_name import confirm_by_name
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.quarantine import QuarantineCase
from airflow_cdc_provider.control.quarantine_commands import cases_of, decide_records, show_record, without_values
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.waiting_commands import waiting_note, waiting_tables
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag

COLUMNS = ("record", "table", "window", "age", "parked", "reason", "decision")
EMPTY = "no records in quarantine"
NOT_IN_QUARANTINE = "is no longer in quarantine"


@cli_command
def list(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    cases = cases_of(replicator, require_tables(replicator, args.table, known_tables(replicator)))
    rows = [
        (
            case.record.id,
            case.copy,
            case.record.window,
            _age(case.since),
            "blocks the table" if case.blocks_table else case.parked,
            case.record.reason,
            case.decision.kind.value if case.decision else "",
        )
        for case in cases
    ]
    lines = [] if cases else [EMPTY]
    return CommandOutput({"records": [without_values(case) for case in cases]}, OutputTable(COLUMNS, rows), lines)


@cli_command
def show(args: argparse.Namespace) -> CommandOutput:
    """Writes an audit entry, because the bytes contain values of the row."""
    body = show_record(open_with_connections(find_definition(args.name)), args.id, current_user())
    lines = [f"{name}: {body[name]}" for name in ("id", "table", "window", "position", "reason", "first_seen", "codec")]
    lines.append(f"bytes: {b64decode(body['raw'])!r}")
    lines.append(f"record: {json.dumps(body['record'], ensure_ascii=False)}")
    if decision := body["decision"]:
        reason = decision["reason"] or "-"
        lines.append(f"decided: {decision['kind']} by {decision['decided_by']}, {decision['decided_at']}, {reason}")
    return CommandOutput(body, lines=lines)


@cli_command
def replay(args: argparse.Namespace) -> CommandOutput:
    given = [*map(_assignment, args.set), *((name, None) for name in args.set_null)]
    values = dict(given)
    if len(values) < len(given):
        twice = sorted({name for name, _ in given if [one for one, _ in given].count(name) > 1})
        raise CommandRefused.of("CLI014", "several values of a column", "--set", ", ".join(twice), "one of each column")
    return _decide(args, CommandKind.REPLAY, values)


@cli_command
def discard(args: argparse.Namespace) -> CommandOutput:
    confirm_by_name(args, find_definition(args.name).name, "the discard of records")
    return _decide(args, CommandKind.DISCARD, {})


def _decide(args: argparse.Namespace, kind: CommandKind, values: dict[str, str | None]) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    if args.now:
        require_runnable_dag(replicator.name)
    tables = require_tables(replicator, args.table, known_tables(replicator))
    decided = decide_records(replicator, kind, args.ids, tables, values, args.reason, current_user(), args.key or "")
    lines = [f"{record_id} {NOT_IN_QUARANTINE}" for record_id in decided.ended]
    if decided.command is None:
        body: dict[str, Any] = {"kind": kind.value, "status": CommandStatus.DONE.value, "records": []}
        return CommandOutput(body, lines=lines or [EMPTY])
    return _command_output(replicator, follow_command(args, replicator, decided.command), decided.cases, lines)


def _command_output(
    replicator: Replicator, command: Command, cases: Sequence[QuarantineCase], lines: Sequence[str]
) -> CommandOutput:
    waiting = waiting_tables(command, replicator.state.tables(replicator.name).values())
    body = {
        "id": command.id,
        "kind": command.kind.value,
        "status": command.status.value,
        "outcome": command.outcome,
        "records": command.arguments["records"],
        "waits_for": [*waiting],
    }
    blocked = sorted({case.copy for case in cases if case.blocks_table})
    resume = [f"afterwards run `airflow cdc resume {replicator.name} --table {in_shell(table)}`" for table in blocked]
    if command.status is CommandStatus.FAILED:
        problem = Problem("CMD007", f"{command.kind} failed", where=command.replicator, found=command.outcome)
        return CommandOutput(body, lines=lines, problems=[problem], code=exit_codes.DATA)
    submitted = f"submitted {command.kind}; the next run carries it out{waiting_note(waiting)}"
    outcome = command.outcome if command.finished else submitted
    return CommandOutput(body, lines=[*lines, outcome, *resume])


def _age(since: str) -> str:
    return pendulum.instance(datetime.fromisoformat(since)).diff_for_humans(absolute=True)


def _assignment(text: str) -> tuple[str, str | None]:
    """``COLUMN=VALUE``."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CommandRefused.of("CLI014", "not a column and a value", "--set", text.partition("=")[0], "COLUMN=VALUE")
    return name, value
