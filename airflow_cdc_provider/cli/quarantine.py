"""``airflow cdc quarantine list|show|replay|discard``: records that could not be applied, and what to do about them."""

from __future__ import annotations

import argparse
import json
import uuid
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pendulum

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import NotFound, find, named, opened, operator
from airflow_cdc_provider.cli.runs import follow, require_startable, start_run
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.quarantine import QuarantineCase, decide_about, open_cases
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, decisions_by_record
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.log.quarantine import BadRecord
from airflow_cdc_provider.core.serde import to_plain

COLUMNS = ("record", "table", "window", "age", "behind", "reason", "decided")
NOTHING = "nothing is in quarantine"
NOT_OPEN = "is not in quarantine any more"


@command
def list(args: argparse.Namespace) -> Answer:
    replicator = opened(find(args.name))
    cases = _cases(replicator, args.table)
    rows = [
        (
            case.record.id,
            case.record.table,
            case.record.window,
            _age(case.since),
            "stops the table" if case.stops else case.behind,
            case.record.reason,
            case.decision.kind.value if case.decision else "",
        )
        for case in cases
    ]
    lines = [] if cases else [NOTHING]
    return Answer({"records": [_plain(case) for case in cases]}, OutputTable(COLUMNS, rows), lines)


@command
def show(args: argparse.Namespace) -> Answer:
    """Who looked is in the audit: the bytes hold values of the row."""
    replicator = opened(find(args.name))
    record = _put_aside(replicator, args.id)
    if record is None:
        raise NotFound(_unknown(replicator, args.id))
    replicator.state.write_audit(
        replicator.name, operator(), "quarantine show", {"table": record.table, "record": record.id}
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
    return Answer(body, lines=lines)


@command
def replay(args: argparse.Namespace) -> Answer:
    values = dict(_assignment(text) for text in args.set)
    if values and len(args.ids) != 1:
        raise CommandRefused(Problem("CLI012", "--set mends one record", found=f"{len(args.ids)} of them"))
    return _decide(args, CommandKind.REPLAY, DecisionKind.REPLAY, values)


@command
def discard(args: argparse.Namespace) -> Answer:
    return _decide(args, CommandKind.DISCARD, DecisionKind.DISCARD, {})


def _decide(args: argparse.Namespace, kind: CommandKind, decided: DecisionKind, values: dict[str, Any]) -> Answer:
    if not args.ids and not args.table:
        raise CommandRefused(Problem("CLI013", f"{kind} what?", allowed="ids of records, or --table for all of one"))
    replicator = opened(find(args.name))
    if args.now:
        require_startable(replicator.name)
    cases = _cases(replicator, args.table)
    chosen = [case for case in cases if not args.ids or case.record.id in args.ids]
    gone = [one for one in args.ids if one not in {case.record.id for case in chosen}]
    for one in gone:
        if _put_aside(replicator, one) is None:
            raise NotFound(_unknown(replicator, one))
    lines = [f"{one} {NOT_OPEN}" for one in gone]
    if not chosen:
        body: dict[str, Any] = {"kind": kind.value, "status": CommandStatus.DONE.value, "records": []}
        return Answer(body, lines=lines or [NOTHING])
    _require_columns(chosen, values)
    decide_about(replicator, chosen, decided, values, args.reason, operator())
    asked = _requested(replicator, kind, chosen, args.key)
    run_id = start_run(replicator.name) if args.now and not asked.finished else ""
    if args.wait:
        asked = follow(replicator, asked, run_id)
    return _answer(replicator, asked, chosen, lines)


def _require_columns(cases: Sequence[QuarantineCase], values: dict[str, Any]) -> None:
    for case in cases:
        if unknown := [name for name in values if name not in case.columns]:
            where, allowed = case.record.table, ", ".join(case.columns)
            raise CommandRefused(Problem("CLI016", "no such column", where, ", ".join(unknown), allowed))


def _requested(replicator: Replicator, kind: CommandKind, cases: Sequence[QuarantineCase], key: str | None) -> Command:
    """The request, or the one that is still open for the same records."""
    tables = tuple(sorted({case.record.table for case in cases}))
    arguments = {"records": sorted(case.record.id for case in cases)}
    if not key:
        for other in replicator.state.pending(replicator.name):
            if (other.kind, other.arguments) == (kind, arguments):
                return other
    return replicator.state.request(replicator.name, kind, tables, arguments, key or str(uuid.uuid4()), operator())


def _answer(replicator: Replicator, asked: Command, cases: Sequence[QuarantineCase], lines: Sequence[str]) -> Answer:
    body = {
        "id": asked.id,
        "kind": asked.kind.value,
        "status": asked.status.value,
        "outcome": asked.outcome,
        "records": asked.arguments["records"],
    }
    stopped = sorted({case.record.table for case in cases if case.stops})
    resume = [f"then: airflow cdc resume {replicator.name} --table {table}" for table in stopped]
    if asked.status is CommandStatus.FAILED:
        problem = Problem("CMD007", f"{asked.kind} could not be done", where=asked.replicator, found=asked.outcome)
        return Answer(body, lines=lines, problems=[problem], code=a.DATA)
    told = asked.outcome if asked.finished else f"{asked.kind} is decided; the next run carries it out"
    return Answer(body, lines=[*lines, told, *resume])


def _cases(replicator: Replicator, wanted: Sequence[str]) -> Sequence[QuarantineCase]:
    targets = known_tables(replicator)
    tables = named(replicator, wanted, targets) or tuple(targets)
    cases = []
    for table in tables:
        control = replicator.target.state(table, targets[table]).control
        cases += open_cases(replicator, table, control) if control else []
    return cases


def _put_aside(replicator: Replicator, record_id: str) -> BadRecord | None:
    """What came, whether or not it still waits."""
    found = (replicator.log.bad_record(table, record_id) for table in known_tables(replicator))
    return next((record for record in found if record), None)


def _plain(case: QuarantineCase) -> dict[str, Any]:
    """Without what the row holds: that is shown record by record."""
    record = case.record
    return {
        "id": record.id,
        "table": record.table,
        "window": record.window,
        "position": record.position,
        "reason": record.reason,
        "codec": record.codec,
        "since": case.since,
        "behind": case.behind,
        "stops": case.stops,
        "decision": case.decision.kind.value if case.decision else None,
    }


def _age(since: str) -> str:
    return pendulum.instance(datetime.fromisoformat(since)).diff_for_humans(absolute=True)


def _assignment(text: str) -> tuple[str, Any]:
    """``COLUMN=VALUE``: the value is JSON, or else a text as it stands."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise CommandRefused(Problem("CLI014", "no column and value", "--set", text.partition("=")[0], "COLUMN=VALUE"))
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _unknown(replicator: Replicator, record: str) -> Problem:
    do = f"airflow cdc quarantine list {replicator.name}"
    return Problem("CLI015", f"no record {record[:40]!r} was ever in quarantine", where=replicator.name, do=do)
