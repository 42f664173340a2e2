"""``airflow cdc status [NAME]``: shows the last known state and lag of every table, and the retained source log."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import find_definitions, load_definitions, unsearched_bundles
from airflow_cdc_provider.connectors.registry import open_source
from airflow_cdc_provider.connectors.source_features import RetainsLog
from airflow_cdc_provider.control.copy_progress import copy_progress, progress_text
from airflow_cdc_provider.control.footprint import left_note
from airflow_cdc_provider.core.decisions.freshness import Freshness, freshness
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry, refusal
from airflow_cdc_provider.core.decisions.stream_positions import plain_positions
from airflow_cdc_provider.core.decisions.table_status import table_status
from airflow_cdc_provider.core.decisions.waiting_commands import plain_command, waiting_note
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.log.quarantine import DISCARDED
from airflow_cdc_provider.core.log.retained_log import RetainedLog, SourceRetention, plain_retention
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.selected_columns import withheld_note
from airflow_cdc_provider.core.table.attainment import meets
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.staging.open_store import open_log

APPLIED = ("window", "rows", "changes", "engine")
COLUMNS = ("replicator", "table", "state", *APPLIED, "quarantined", "lag", "verified", "reason", "remedy")
PARALLEL_SOURCES = 8
MIB = 1 << 20
UNKNOWN_LOG = RetainedLog()


@dataclass(frozen=True)
class RetainedLogResult:
    """The retained log of a source, or the ``reason`` why it is unknown."""

    log: RetainedLog = UNKNOWN_LOG
    reason: str = ""


@cli_command
def status(args: argparse.Namespace) -> CommandOutput:
    state = open_state()
    now = state.now()
    entries = state.replicators.all()
    without_yaml = _without_yaml(entries, args.name)
    listed = [] if args.name in without_yaml else find_definitions(args.name)
    definitions = [*listed, *(entry.definition for entry in without_yaml.values())]
    tables: list[dict[str, Any]] = []
    rows = []
    commands, missed, withheld, left = [], list[str](), list[str](), list[str]()
    for definition in definitions:
        index = state.tables(definition.name).values()
        copying = copy_progress(definition, index, secrets_of)
        for row in index:
            fresh, progress = freshness(row, definition.freshness, now), copying.get(row.table)
            tables.append({"replicator": definition.name, **table_status(row, definition, progress, now)})
            shown = replace(row, reason=progress_text(progress, now)) if progress else row
            rows.append(_cells(definition.name, shown, fresh))
            withheld += [withheld_note(f"{definition.name}: {row.table}", row.withheld)] if row.withheld else []
            missed += [*_missed(definition, row)]
            left += [] if target_of_copy(row.table) in definition.target_names else [left_note(row.table)]
        commands += [plain_command(command, index) for command in state.pending(definition.name)]
    names = [definition.name for definition in definitions]
    retained = _retained_logs(definitions)
    positions = {name: state.positions.get(name) for name in names}
    retention = {name: one.retention for name, one in positions.items()}
    changes = {name: entries[name].change for name in names if name in entries and entries[name].change}
    lanes = {name: {lane.value: state.holder(name, lane) for lane in Lane} for name in names}
    unsearched = unsearched_bundles()
    body = {
        "replicators": names,
        "retention": {name: plain_retention(one) for name, one in retention.items()},
        "positions": {name: plain_positions(one, state.tables(name).values()) for name, one in positions.items()},
        "tables": tables,
        "requests": commands,
        "lanes": lanes,
        "without_yaml": list(without_yaml),
        "unsearched_bundles": unsearched,
        "changes": {name: to_plain(change) for name, change in changes.items()},
        "kept_bytes": {name: result.log.bytes for name, result in retained.items()},
        "kept_since": {
            name: result.log.since.isoformat() if result.log.since else None for name, result in retained.items()
        },
    }
    lines = [
        f"command {one['kind']} of {one['replicator']}: {one['status']}{waiting_note(one['waits_for'])}"
        for one in commands
    ]
    lines += [*_retained_lines(retained, retention), *missed, *withheld, *left]
    lines += [*_change_lines(definitions, entries)]
    lines += [*_without_yaml_lines(without_yaml, complete=not unsearched), *unsearched]
    if not tables:
        lines.append("no tables yet: no run has finished open_window")
    return CommandOutput(body, OutputTable(COLUMNS, rows), lines)


def _missed(definition: Definition, row: TableRow) -> Iterator[str]:
    fraction = row.attainment.fraction()
    if meets(fraction, definition.objective) is False:
        yield (
            f"{definition.name}: {row.table} was not late in {fraction:.2%} of the last 30 days; its objective is"
            f" {definition.objective}"
        )


def _without_yaml(entries: Mapping[str, ReplicatorEntry], name: str | None) -> dict[str, ReplicatorEntry]:
    """Replicators that have run and have no valid YAML now."""
    valid = load_definitions().loaded.keys()
    return {
        one: entry
        for one, entry in entries.items()
        if one not in valid and not entry.gone and (name is None or name == one)
    }


def _without_yaml_lines(names: Iterable[str], complete: bool) -> list[str]:
    """``complete``: all Dag bundles were searched. Otherwise a YAML may be in one of the others."""
    do = "has no valid YAML any more; to free what it keeps: airflow cdc delete {name}"
    return [f"{name}: {do.format(name=name) if complete else 'has no valid YAML on this host'}" for name in names]


def _change_lines(definitions: Iterable[Definition], entries: Mapping[str, ReplicatorEntry]) -> Iterator[str]:
    for definition in definitions:
        problem = refusal(entries.get(definition.name), definition)
        if problem is not None:
            yield f"{definition.name}: {problem.what}, {problem.found}; {problem.do}"


def _cells(name: str, row: TableRow, fresh: Freshness) -> tuple[object, ...]:
    changed = sum(count for kind, count in row.changes.items() if kind != DISCARDED)
    lag = "" if fresh.lag_s is None else f"{fresh.lag_s:,.0f} s"
    lag += (", late" if lag else "late") if fresh.late else ""
    reason = row.reason or _catching_up(row)
    applied = row.window, _rows(row), changed, row.engine
    return name, row.table, row.state, *applied, _quarantine_cell(row), lag, _verified(row), reason, row.remedy


def _rows(row: TableRow) -> int | str | None:
    """The row count, with its time if the table has changed since."""
    if row.rows is None or row.rows_current:
        return row.rows
    return f"{row.rows:,} at {row.rows_at[:19] or 'the last copy'}"


def _retained_logs(definitions: Sequence[Definition]) -> dict[str, RetainedLogResult]:
    with ThreadPoolExecutor(PARALLEL_SOURCES) as pool:
        return dict(
            zip((definition.name for definition in definitions), pool.map(_retained_log, definitions), strict=True)
        )


def _retained_log(definition: Definition) -> RetainedLogResult:
    """An unavailable source does not hide the rest of the status."""
    try:
        secrets = secrets_of(definition)
        source = open_source(definition, secrets.source)
        if not isinstance(source, RetainsLog):
            return RetainedLogResult()
        log = open_log(definition, secrets.staging)
        sealed = log.sealed()
        return RetainedLogResult(source.retained_log(log.manifest(sealed).hi if sealed else None))
    except CdcError as error:
        return RetainedLogResult(reason=error.problems[0].what)


def _retained_lines(retained: Mapping[str, RetainedLogResult], retention: Mapping[str, SourceRetention]) -> list[str]:
    """``retention``: as runs have measured it."""
    lines = [
        f"{name}: the source retains {result.log.bytes / MIB:,.1f} MiB of log for it" + _since(result.log)
        for name, result in retained.items()
        if result.log.bytes is not None
    ]
    lines += [
        f"{name}: if nothing is read from now on, the source drops unread changes at {end:%Y-%m-%d %H:%M} UTC"
        for name, one in retention.items()
        if (end := one.runs_out_at) is not None
    ]
    return lines + [
        f"{name}: the size of the retained log is unknown: {result.reason}"
        for name, result in retained.items()
        if result.reason
    ]


def _since(retained: RetainedLog) -> str:
    return f", since {retained.since:%Y-%m-%d %H:%M} UTC" if retained.since else ""


def _verified(row: TableRow) -> str:
    return row.verified.shown if row.verified else ""


def _catching_up(row: TableRow) -> str:
    if not is_catching_up(row):
        return ""
    assert row.control is not None
    return f"catching up until window {row.control.high}"


def _quarantine_cell(row: TableRow) -> str:
    """The numbers of records in quarantine, to fetch, parked behind these, and discarded since the last copy."""
    carry = row.carry
    parts = [f"{row.quarantined:,}"] if row.quarantined else []
    parts += [f"{carry.dirty:,} to fetch"] if carry.dirty else []
    if carry.parked:
        parts[-1] += f" (+{carry.parked:,} parked)"
    parts += [f"{discarded:,} discarded"] if (discarded := row.changes.get(DISCARDED)) else []
    return ", ".join(parts)
