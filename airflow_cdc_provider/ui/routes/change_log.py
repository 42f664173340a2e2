"""What the change log has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from airflow_cdc_provider.core.decisions.holes import is_open
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import Readable
from airflow_cdc_provider.ui.paging import Cursor, before, page
from airflow_cdc_provider.ui.registered import opened
from airflow_cdc_provider.ui.responses import json_response

router = APIRouter()


@router.get("/replicators/{replicator}/windows")
def list_windows(
    request: Request, replicator: Readable, limit: Annotated[int, Query(ge=1, le=100)] = 48, cursor: Cursor = ""
) -> Response:
    """The windows of the change log, the newest first: when they were sealed, and what they have. A hole is open until
    every copy of its table was made again."""
    one = opened(open_state(), replicator)
    end = before(cursor) or one.log.sealed() + 1
    found = list(takewhile(lambda manifest: manifest.window < end, one.log.manifests(end - limit - 1)))
    manifests, paging = page(found[::-1], limit, lambda manifest: str(manifest.window))
    copies = [row.control for row in one.state.tables(replicator).values() if row.control]
    return json_response(request, {"windows": [_window(manifest, copies) for manifest in manifests], **paging})


def _window(manifest: Manifest, copies: Sequence[ControlRecord]) -> dict[str, Any]:
    slices = manifest.tables.values()
    return {
        "window": manifest.window,
        "sealed_at": manifest.sealed_at,
        "first_commit": manifest.commit_ts_min,
        "last_commit": manifest.commit_ts_max,
        "records": sum(one.rows for one in slices),
        "bytes": sum(file.bytes for one in slices for file in one.files),
        "tables": {name: one.rows for name, one in manifest.tables.items() if one.rows},
        "holes": [
            {
                "table": hole.table,
                "cause": hole.cause,
                "detail": hole.detail,
                "open": is_open(hole, manifest.window, copies),
            }
            for hole in manifest.holes
        ],
    }
