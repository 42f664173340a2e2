"""Records that could not be applied, and decisions about them."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response, status
from pydantic import BaseModel, ConfigDict, Field

from airflow_cdc_provider.control.quarantine_commands import cases_of, decide_records, show_record, without_values
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.typed_names import require_typed_name
from airflow_cdc_provider.core.decisions.waiting_commands import needs_resume, plain_command
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import Editable, Readable, ReadableWithValues, User
from airflow_cdc_provider.ui.paging import Cursor, Limit, after, page
from airflow_cdc_provider.ui.registered import opened, require_tables
from airflow_cdc_provider.ui.responses import json_response
from airflow_cdc_provider.ui.routes.commands import CONFIRM, Key, run_of_key
from airflow_cdc_provider.ui.texts import Id, Line

router = APIRouter()

MAX_RECORDS = 1000


class RecordDecision(BaseModel):
    """``records``: ids; all in ``tables`` if empty. ``values``: corrected values by column, as texts, null for NULL, to
    apply one record again.
    ``now``: start a run for it. ``confirm``: the name of the replicator, to discard."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["replay", "discard"]
    records: Annotated[list[str], Field(max_length=MAX_RECORDS)] = []
    tables: Annotated[list[str], Field(max_length=MAX_RECORDS)] = []
    values: dict[str, str | None] = {}
    reason: Line = ""
    now: bool = False
    confirm: str = ""


@router.get("/replicators/{replicator}/quarantine")
def list_quarantine(
    request: Request,
    replicator: Readable,
    table: Annotated[list[str] | None, Query(max_length=MAX_RECORDS)] = None,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> Response:
    """The records that wait, by their ids, without their values. ``table``: only of these tables."""
    one = opened(open_state(), replicator)
    start = after(cursor)
    shown = [without_values(case) for case in cases_of(one, require_tables(one, table or ()))]
    found = sorted((record for record in shown if record["id"] > start), key=itemgetter("id"))
    records, paging = page(found, limit, itemgetter("id"))
    return json_response(request, {"records": records, **paging})


@router.get("/replicators/{replicator}/quarantine/{record}")
def get_record(request: Request, replicator: ReadableWithValues, record: Id, user: User) -> Response:
    """A record with its values, for those who may edit the DAG. Each request is in the audit log."""
    return json_response(request, show_record(opened(open_state(), replicator), record, user.get_name()))


@router.post("/replicators/{replicator}/quarantine", status_code=status.HTTP_202_ACCEPTED)
def decide(replicator: Editable, body: RecordDecision, user: User, key: Key) -> dict[str, Any]:
    """Apply records again, or discard them. The next run carries the decision out."""
    kind = CommandKind(body.decision)
    if kind is CommandKind.DISCARD:
        require_typed_name(f"the {kind}", replicator, body.confirm, CONFIRM)
    one = opened(open_state(), replicator)
    tables = require_tables(one, body.tables)
    if body.now:
        require_runnable_dag(replicator)
    decided = decide_records(one, kind, body.records, tables, body.values, body.reason, user.get_name(), key)
    rows, command = one.state.tables(replicator).values(), decided.command
    starts = body.now and command is not None and not needs_resume(command, rows)
    return {
        "command": plain_command(command, rows) if command else None,
        "records": [case.record.id for case in decided.cases],
        "ended": list(decided.ended),
        "started_run": run_of_key(replicator, key) if starts else "",
    }
