"""Replicators and their tables, as of their last run."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from airflow_cdc_provider.control.copy_progress import copy_progress
from airflow_cdc_provider.control.run_metrics import current_gauges
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.decisions.state_versions import state_version
from airflow_cdc_provider.core.decisions.stream_positions import plain_cursor, plain_positions
from airflow_cdc_provider.core.decisions.summaries import ReplicatorSummary
from airflow_cdc_provider.core.decisions.table_status import table_status
from airflow_cdc_provider.core.decisions.waiting_commands import plain_command
from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.core.log.retained_log import plain_retention
from airflow_cdc_provider.core.metrics import plain_samples
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.dag_plan import asset_name, asset_uri
from airflow_cdc_provider.core.table.recent_changes import series
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.dag_runs import replicator_dags
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import MayEdit, Readable, ReadableNames
from airflow_cdc_provider.ui.paging import MAX_LIMIT, Cursor, Limit, after, before, page
from airflow_cdc_provider.ui.registered import entries_after, require_entry
from airflow_cdc_provider.ui.responses import json_response
from airflow_cdc_provider.ui.texts import TableName

router = APIRouter()


@router.get("/replicators")
def list_replicators(
    request: Request,
    names: ReadableNames,
    limit: Limit = 50,
    cursor: Cursor = "",
    search: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The replicators whose DAGs the user may read, by name, a page at a time. ``not_run``: on the first page, those
    that no run has registered yet."""
    state = open_state()
    now = state.now()
    found, paging = page(
        entries_after(state, after(cursor), search, names, limit + 1), limit, lambda one: one.definition.name
    )
    summaries = state.summaries([entry.definition.name for entry in found])
    items = [_listed(entry, summaries[entry.definition.name], now) for entry in found]
    not_run = [] if cursor else replicator_dags(search, names, state.replicators.names(), MAX_LIMIT)
    return json_response(request, {"replicators": items, "not_run": to_plain(not_run), **paging})


@router.get("/replicators/{replicator}")
def get_replicator(request: Request, replicator: Readable, may_edit: MayEdit) -> Response:
    """A replicator, with its definition, the runs that hold its lanes, commands that are not finished and the paused
    tables that they wait for, and the positions of its source and its copies. ``retention``: of the source's log, as
    last measured. ``may_edit``: whether the user may command it."""
    state = open_state()
    entry = require_entry(state, replicator)
    rows, positions = state.tables(replicator).values(), state.positions.get(replicator)
    body = _listed(entry, state.summaries([replicator])[replicator], state.now())
    body |= {
        "definition": to_plain(entry.definition),
        "registered_at": entry.registered_at,
        "lanes": {lane.value: state.holder(replicator, lane) for lane in Lane},
        "pending": [plain_command(command, rows) for command in state.pending(replicator)],
        "version": state_version(rows),
        "positions": plain_positions(positions, rows),
        "retention": plain_retention(positions.retention),
        "may_edit": may_edit,
    }
    return json_response(request, body)


@router.get("/replicators/{replicator}/tables")
def list_tables(request: Request, replicator: Readable, limit: Limit = 100, cursor: Cursor = "") -> Response:
    """The tables of a replicator by name, a page at a time."""
    state = open_state()
    entry, now = require_entry(state, replicator), state.now()
    rows, paging = page(state.tables_page(replicator, after(cursor), limit + 1), limit, lambda row: row.table)
    copying = copy_progress(entry.definition, rows, secrets_of)
    tables = [table_status(row, entry.definition, copying.get(row.table), now) for row in rows]
    return json_response(request, {"tables": tables, **paging})


@router.get("/replicators/{replicator}/tables/{table:path}")
def get_table(request: Request, replicator: Readable, table: TableName) -> Response:
    """A table, with the schema of its copy, its last states, its costs by day, and its asset."""
    state = open_state()
    entry = require_entry(state, replicator)
    row = state.table(replicator, table)
    if row is None:
        raise NotFound.of(
            "API002", f"{replicator} has no table {table}", do="list its tables", allowed="a source table"
        )
    definition, control = entry.definition, row.control
    copying = copy_progress(definition, [row], secrets_of).get(table)
    body = table_status(row, definition, copying, state.now()) | {
        "asset": {"name": asset_name(replicator, table, row.target), "uri": asset_uri(definition, table, row.target)},
        "history": to_plain(row.history),
        "costs": to_plain(row.costs),
        "table_state": to_plain(control.state) if control else None,
        "schema": to_plain(control.schema) if control else None,
        "cursor": plain_cursor(control),
    }
    return json_response(request, body)


@router.get("/replicators/{replicator}/metrics")
def list_metrics(request: Request, replicator: Readable) -> Response:
    """The gauges of a replicator as of now."""
    state = open_state()
    entry = require_entry(state, replicator)
    return json_response(request, {"metrics": plain_samples(current_gauges(state, entry.definition, state.now()))})


@router.get("/replicators/{replicator}/audit")
def list_audit(request: Request, replicator: Readable, limit: Limit = 50, cursor: Cursor = "") -> Response:
    """Who did what to a replicator, the newest entries first."""
    found = open_state().audit(replicator, limit + 1, before(cursor))
    entries, paging = page(found, limit, lambda entry: str(entry.number))
    return json_response(request, {"entries": to_plain(entries), **paging})


def _listed(entry: ReplicatorEntry, summary: ReplicatorSummary, now: str) -> dict[str, Any]:
    definition = entry.definition
    allowed = definition.freshness
    return {
        "name": definition.name,
        "source": definition.source.type,
        "targets": [{"name": target.name, "type": target.type} for target in definition.all_targets],
        "freshness_s": allowed.total_seconds(),
        "lag_s": summary.lag_s(now),
        "late": summary.is_late(allowed, now),
        "tables": summary.tables,
        **{name: value for name, value in to_plain(summary).items() if name != "recent"},
        "changes_24h": series(summary.recent, now),
    }
