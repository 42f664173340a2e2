"""What the change log has: its last windows, and records in quarantine. Read from staging and targets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.quarantine import QuarantineCase, open_cases
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import Readable
from airflow_cdc_provider.ui.registered import opened
from airflow_cdc_provider.ui.responses import json_response

router = APIRouter()


@router.get("/replicators/{replicator}/windows")
def list_windows(request: Request, replicator: Readable, limit: Annotated[int, Query(ge=1, le=100)] = 48) -> Response:
    """The last windows of the change log, the newest first: when they were sealed, and what they have."""
    log = opened(open_state(), replicator).log
    found = list(log.manifests(log.sealed() - limit + 1))
    return json_response(request, {"windows": [_window(one) for one in reversed(found)]})


@router.get("/replicators/{replicator}/quarantine")
def list_quarantine(request: Request, replicator: Readable, table: str = "") -> Response:
    """The records that could not be applied, without their values. ``table``: only its records."""
    one = opened(open_state(), replicator)
    cases = [
        case
        for name, target in known_tables(one).items()
        if table in ("", name) and (control := one.targets.state(name, target).control)
        for case in open_cases(one, name, control)
    ]
    return json_response(request, {"records": [_without_values(case) for case in cases]})


def _window(manifest: Manifest) -> dict[str, Any]:
    slices = manifest.tables.values()
    return {
        "window": manifest.window,
        "sealed_at": manifest.sealed_at,
        "first_commit": manifest.commit_ts_min,
        "last_commit": manifest.commit_ts_max,
        "records": sum(one.rows for one in slices),
        "bytes": sum(file.bytes for one in slices for file in one.files),
        "tables": {name: one.rows for name, one in manifest.tables.items() if one.rows},
        "holes": [{"table": hole.table, "cause": hole.cause, "detail": hole.detail} for hole in manifest.holes],
    }


def _without_values(case: QuarantineCase) -> dict[str, Any]:
    record = case.record
    return {
        "id": record.id,
        "table": record.table,
        "window": record.window,
        "reason": record.reason,
        "since": case.since,
        "parked": case.parked,
        "blocks_table": case.blocks_table,
        "decision": to_plain(case.decision.kind) if case.decision else None,
    }
