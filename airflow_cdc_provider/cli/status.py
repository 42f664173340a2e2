"""``airflow cdc status [NAME]``: what was last seen of every table, how old it is, and what the source keeps for us."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import definitions, find
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source import RetainedLog, RetainsLog
from airflow_cdc_provider.control.replicator import utc_now
from airflow_cdc_provider.core.decisions.freshness import Freshness, freshness
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.log.carry_over import NOTHING
from airflow_cdc_provider.core.log.quarantine import DISCARDED
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.staging.open_store import open_log

COLUMNS = ("replicator", "table", "state", "window", "rows", "changes", "quarantined", "lag", "reason", "remedy")
ASKED_AT_ONCE = 8
MIB = 1 << 20


NO_ANSWER = RetainedLog()


@dataclass(frozen=True)
class SourceAnswer:
    """What a source says of its log, or ``why`` it says nothing."""

    kept: RetainedLog = NO_ANSWER
    why: str = ""


@command
def status(args: argparse.Namespace) -> Answer:
    chosen = [find(args.name)] if args.name else [one.definition for _, one in sorted(definitions().loaded.items())]
    state, now = open_state(), utc_now()
    tables: list[dict[str, Any]] = []
    rows = []
    requests = []
    for definition in chosen:
        for row in state.tables(definition.name).values():
            fresh = freshness(row, definition.freshness, now)
            tables.append({"replicator": definition.name, **_plain(row, fresh)})
            rows.append(_cells(definition.name, row, fresh))
        requests += [to_plain(command) for command in state.pending(definition.name)]
    names = [definition.name for definition in chosen]
    kept = _kept(chosen)
    lanes = {name: {lane.value: state.holder(name, lane) for lane in Lane} for name in names}
    body = {
        "replicators": names,
        "tables": tables,
        "requests": requests,
        "lanes": lanes,
        "kept_bytes": {name: one.kept.bytes for name, one in kept.items()},
        "kept_since": {name: one.kept.since.isoformat() if one.kept.since else None for name, one in kept.items()},
    }
    lines = [f"request {request['kind']} of {request['replicator']}: {request['status']}" for request in requests]
    lines += [*_keeping(kept)]
    if not tables:
        lines.append("no run has seen a table yet")
    return Answer(body, OutputTable(COLUMNS, rows), lines)


def _cells(name: str, row: TableRow, fresh: Freshness) -> tuple[object, ...]:
    changed = sum(count for kind, count in row.changes.items() if kind != DISCARDED)
    lag = "" if fresh.lag_s is None else f"{fresh.lag_s:,.0f} s"
    lag += (", late" if lag else "late") if fresh.late else ""
    reason = row.reason or _catching_up(row)
    return name, row.table, row.state, row.window, _rows(row), changed, _waits(row), lag, reason, row.remedy


def _rows(row: TableRow) -> int | str | None:
    """As they are now; where the table has changed since they were counted, as of when."""
    if row.rows is None or row.rows_current:
        return row.rows
    return f"{row.rows:,} at {row.rows_at[:19] or 'the last copy'}"


def _plain(row: TableRow, fresh: Freshness) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(row)
    del plain["control"]
    carry = row.control.carry if row.control else NOTHING
    aged: dict[str, Any] = to_plain(fresh)
    waiting = {"quarantined": carry.quarantined, "dirty": carry.dirty, "parked": carry.parked}
    return plain | aged | waiting | {"catching_up": is_catching_up(row)}


def _kept(chosen: Sequence[Definition]) -> dict[str, SourceAnswer]:
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return dict(zip((one.name for one in chosen), pool.map(_kept_for, chosen), strict=True))


def _kept_for(definition: Definition) -> SourceAnswer:
    """A source that cannot be asked hides nothing of what is known."""
    try:
        secrets = secrets_of(definition)
        source = open_source(definition, secrets.source)
        if not isinstance(source, RetainsLog):
            return SourceAnswer()
        log = open_log(definition, secrets.staging)
        sealed = log.sealed()
        return SourceAnswer(source.retained_log(log.manifest(sealed).hi if sealed else None))
    except CdcError as error:
        return SourceAnswer(why=error.problems[0].what)


def _keeping(kept: Mapping[str, SourceAnswer]) -> list[str]:
    lines = [
        f"{name}: the source keeps {one.kept.bytes / MIB:,.1f} MiB for it" + _since(one.kept)
        for name, one in kept.items()
        if one.kept.bytes is not None
    ]
    return lines + [
        f"{name}: how much the source keeps for it is not known: {one.why}" for name, one in kept.items() if one.why
    ]


def _since(kept: RetainedLog) -> str:
    return f", and its log since {kept.since:%Y-%m-%d %H:%M} UTC" if kept.since else ""


def _catching_up(row: TableRow) -> str:
    if not is_catching_up(row):
        return ""
    assert row.control is not None
    return f"the copy catches up, until window {row.control.high}"


def _waits(row: TableRow) -> str:
    """How many records are in quarantine, how many must be fetched, how many wait for those, and how many were given up
    since the last copy."""
    carry = row.control.carry if row.control else NOTHING
    told = [f"{carry.quarantined:,}"] if carry.quarantined else []
    told += [f"{carry.dirty:,} to fetch"] if carry.dirty else []
    if carry.parked:
        told[-1] += f" (+{carry.parked:,} behind)"
    told += [f"{lost:,} discarded"] if (lost := row.changes.get(DISCARDED)) else []
    return ", ".join(told)
