"""``airflow cdc quarantine list|show|replay|discard``: shows bad records and submits decisions about them."""

from __future__ import annotations

import argparse
import json
import uuid
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pendulum

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import (
    current_user,
    find_definition,
    open_with_connections,
    require_tables,
)
from airflow_cdc_provider.cli.runs import follow_command
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.quarantine import QuarantineCase, open_cases, record_decisions
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, decisions_by_record
from airflow_cdc_provider.core.errors import CommandRefused, NotFound, Problem
from airflow_cdc_provider.core.log.quarantine import BadRecord
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag

COLUMNS = ("record", "table", "window", "age", "parked", "reason", "decision")
EMPTY = "no records in quarantine"
NOT_IN_QUARANTINE = "is no longer in quarantine"


@cli_command
def list(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    cases = _open_cases(replicator, args.table)
    rows = [
        (
            case.record.id,
            case.record.table,
            case.record.window,
            _age(case.since),
            "blocks the table" if case.blocks_table else case.parked,
            case.record.reason,
            case.decision.kind.value if case.decision else "",
        )
        for case in cases
    ]
    lines = [] if cases else [EMPTY]
    return CommandOutput(
        {"records": [_record_without_values(case) for case in cases]}, OutputTable(COLUMNS, rows), lines
    )


@cli_command
def show(args: argparse.Namespace) -> CommandOutput:
    """Writes an audit entry, because the bytes contain values of the row."""
    replicator = open_with_connections(find_definition(args.name))
    record = _find_bad_record(replicator, args.id)
    if record is None:
        raise NotFound(_unknown_record(replicator, args.id))
    replicator.state.write_audit(
        replicator.name, current_user(), "quarantine show", {"table": record.table, "record": record.id}
    )
    decision = decisions_by_record(replicator.log.decisions(), record.table).get(record.id)
    body = {**to_plain(record), "decision": to_plain(decision)}
    lines = [f"{name}: {body[name]}" for name in ("id", "table", "window", "position", "reason", "first_seen", "codec")]
    lines.append(f"bytes: {b64decode(record.raw)!r}")
    lines.append(f"record: {json.dumps(body['record'], ensure_ascii=False)}")
    if decision:
        lines.append(
            f"decided: {decision.kind} by {decision.decided_by}, {decision.decided_at}, {decision.reason or '-'}"
        )
    return CommandOutput(body, lines=lines)


@cli_command
def replay(args: argparse.Namespace) -> CommandOutput:
    values = dict(_assignment(text) for text in args.set)
    if values and len(args.ids) != 1:
        raise CommandRefused.of("CLI012", "--set requires exactly one record", found=f"{len(args.ids)} records")
    return _decide_records(args, CommandKind.REPLAY, DecisionKind.REPLAY, values)


@cli_command
def discard(args: argparse.Namespace) -> CommandOutput:
    return _decide_records(args, CommandKind.DISCARD, DecisionKind.DISCARD, {})


def _decide_records(
    args: argparse.Namespace, kind: CommandKind, decision_kind: DecisionKind, values: dict[str, Any]
) -> CommandOutput:
    if not args.ids and not args.table:
        raise CommandRefused.of(
            "CLI013", f"no records given to {kind}", allowed="record ids, or --table for all of a table"
        )
    replicator = open_with_connections(find_definition(args.name))
    if args.now:
        require_runnable_dag(replicator.name)
    cases = _open_cases(replicator, args.table)
    chosen = [case for case in cases if not args.ids or case.record.id in args.ids]
    not_waiting = [record_id for record_id in args.ids if record_id not in {case.record.id for case in chosen}]
    for record_id in not_waiting:
        if _find_bad_record(replicator, record_id) is None:
            raise NotFound(_unknown_record(replicator, record_id))
    lines = [f"{record_id} {NOT_IN_QUARANTINE}" for record_id in not_waiting]
    if not chosen:
        body: dict[str, Any] = {"kind": kind.value, "status": CommandStatus.DONE.value, "records": []}
        return CommandOutput(body, lines=lines or [EMPTY])
    _require_columns(chosen, values)
    record_decisions(replicator, chosen, decision_kind, values, args.reason, current_user())
    command = follow_command(args, replicator, _submit(replicator, kind, chosen, args.key))
    return _command_output(replicator, command, chosen, lines)


def _require_columns(cases: Sequence[QuarantineCase], values: dict[str, Any]) -> None:
    for case in cases:
        if unknown := [name for name in values if name not in case.columns]:
            where, allowed = case.record.table, ", ".join(case.columns)
            raise CommandRefused.of("CLI016", "unknown column", where, ", ".join(unknown), allowed)
        if hidden := [name for name in values if name in case.hidden]:
            raise CommandRefused.of(
                "CLI023",
                "a value of a column that is hashed, masked or truncated would be stored in clear",
                where=case.record.table,
                found=", ".join(hidden),
                allowed=", ".join(name for name in case.columns if name not in case.hidden),
                do="correct the row at the source, then discard the record, or resync the table",
                data="nothing was decided",
            )


def _submit(replicator: Replicator, kind: CommandKind, cases: Sequence[QuarantineCase], key: str | None) -> Command:
    """Submit the command, or return the pending one for the same records."""
    tables = tuple(sorted({case.record.table for case in cases}))
    arguments = {"records": sorted(case.record.id for case in cases)}
    if not key:
        for other in replicator.state.pending(replicator.name):
            if (other.kind, other.arguments) == (kind, arguments):
                return other
    return replicator.state.request(replicator.name, kind, tables, arguments, key or str(uuid.uuid4()), current_user())


def _command_output(
    replicator: Replicator, command: Command, cases: Sequence[QuarantineCase], lines: Sequence[str]
) -> CommandOutput:
    body = {
        "id": command.id,
        "kind": command.kind.value,
        "status": command.status.value,
        "outcome": command.outcome,
        "records": command.arguments["records"],
    }
    blocked = sorted({case.record.table for case in cases if case.blocks_table})
    resume = [f"afterwards run `airflow cdc resume {replicator.name} --table {table}`" for table in blocked]
    if command.status is CommandStatus.FAILED:
        problem = Problem("CMD007", f"{command.kind} failed", where=command.replicator, found=command.outcome)
        return CommandOutput(body, lines=lines, problems=[problem], code=exit_codes.DATA)
    outcome = command.outcome if command.finished else f"submitted {command.kind}; the next run carries it out"
    return CommandOutput(body, lines=[*lines, outcome, *resume])


def _open_cases(replicator: Replicator, table_names: Sequence[str]) -> Sequence[QuarantineCase]:
    targets = known_tables(replicator)
    tables = require_tables(replicator, table_names, targets) or tuple(targets)
    cases = []
    for table in tables:
        control = replicator.targets.state(table, targets[table]).control
        cases += open_cases(replicator, table, control) if control else []
    return cases


def _find_bad_record(replicator: Replicator, record_id: str) -> BadRecord | None:
    """The record, even if it is no longer in quarantine."""
    found = (replicator.log.bad_record(table, record_id) for table in known_tables(replicator))
    return next((record for record in found if record), None)


def _record_without_values(case: QuarantineCase) -> dict[str, Any]:
    """The record without values of its row; ``show`` prints these for one record."""
    record = case.record
    return {
        "id": record.id,
        "table": record.table,
        "window": record.window,
        "position": record.position,
        "reason": record.reason,
        "codec": record.codec,
        "since": case.since,
        "parked": case.parked,
        "blocks_table": case.blocks_table,
        "decision": case.decision.kind.value if case.decision else None,
    }


def _age(since: str) -> str:
    return pendulum.instance(datetime.fromisoformat(since)).diff_for_humans(absolute=True)


def _assignment(text: str) -> tuple[str, Any]:
    """``COLUMN=VALUE``: the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CommandRefused.of("CLI014", "not a column and a value", "--set", text.partition("=")[0], "COLUMN=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _unknown_record(replicator: Replicator, record: str) -> Problem:
    do = f"airflow cdc quarantine list {replicator.name}"
    return Problem("CLI015", f"record {record[:40]!r} was never in quarantine", where=replicator.name, do=do)
