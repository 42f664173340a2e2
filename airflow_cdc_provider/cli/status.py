"""``airflow cdc status [NAME]``: what was last seen of every table."""

from __future__ import annotations

import argparse
from typing import Any

from airflow_cdc_provider.cli.answer import Answer, Listing
from airflow_cdc_provider.cli.finding import definitions, find
from airflow_cdc_provider.cli.running import command
from airflow_cdc_provider.core.carry import NOTHING
from airflow_cdc_provider.core.cuts import catches_up
from airflow_cdc_provider.core.index import Lane, TableRow
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.quarantine import DISCARDED
from airflow_cdc_provider.hooks.state import open_state

COLUMNS = ("replicator", "table", "state", "window", "rows", "changes", "quarantined", "fresh at", "reason", "remedy")


@command
def status(args: argparse.Namespace) -> Answer:
    names = [find(args.name).name] if args.name else sorted(definitions().loaded)
    state = open_state()
    tables: list[dict[str, Any]] = []
    rows = []
    requests = []
    for name in names:
        for row in state.tables(name).values():
            tables.append({"replicator": name, **_plain(row)})
            changed = sum(count for kind, count in row.changes.items() if kind != DISCARDED)
            waits = _waits(row)
            reason = row.reason or _catching_up(row)
            rows.append(
                (name, row.table, row.state, row.window, row.rows, changed, waits, row.fresh_at, reason, row.remedy)
            )
        requests += [to_plain(command) for command in state.pending(name)]
    lanes = {name: {lane.value: state.holder(name, lane) for lane in Lane} for name in names}
    body = {"replicators": names, "tables": tables, "requests": requests, "lanes": lanes}
    lines = [f"request {request['kind']} of {request['replicator']}: {request['status']}" for request in requests]
    if not tables:
        lines.append("no run has seen a table yet")
    return Answer(body, Listing(COLUMNS, rows), lines)


def _plain(row: TableRow) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(row)
    del plain["control"]
    carry = row.control.carry if row.control else NOTHING
    waiting = {"quarantined": carry.quarantined, "dirty": carry.dirty, "parked": carry.parked}
    return plain | waiting | {"catching_up": catches_up(row)}


def _catching_up(row: TableRow) -> str:
    if not catches_up(row):
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
