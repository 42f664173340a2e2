"""Commands about tables, and runs: what the command line does, with the same audit."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from airflow.utils.types import DagRunTriggeredByType
from fastapi import APIRouter, Header, HTTPException, Request, Response, status
from pydantic import BaseModel, ConfigDict, Field

from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.state_versions import require_version
from airflow_cdc_provider.core.decisions.typed_names import require_typed_name
from airflow_cdc_provider.core.decisions.waiting_commands import needs_resume, plain_command
from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks.dag_runs import recent_runs, require_runnable_dag, trigger_run_once
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import CSRF_HEADER, Editable, Readable, User
from airflow_cdc_provider.ui.paging import Cursor, Limit, after, page
from airflow_cdc_provider.ui.registered import opened, require_entry, require_tables
from airflow_cdc_provider.ui.responses import json_response
from airflow_cdc_provider.ui.texts import NO_CONTROLS, Line

router = APIRouter()

Key = Annotated[str, Header(alias=CSRF_HEADER, min_length=8, max_length=200)]
Version = Annotated[str, Header(alias="If-Match", max_length=200)]

CONFIRM = "send the name of the replicator as `confirm`"
LOSES_ROWS = frozenset({CommandKind.REWIND, CommandKind.RESYNC})
"""Commands that can remove rows from a copy: they need the name of the replicator as confirmation."""


class TableCommand(BaseModel):
    """``tables``: all if empty. ``now``: start a run for it. ``to``: of a rewind. ``approve_deletes``: of a resync.
    ``repair``: of a comparison. ``confirm``: the name of the replicator, for a resync or a rewind."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["pause", "resume", "rewind", "resync", "verify"]
    tables: Annotated[list[str], Field(max_length=1000)] = []
    reason: Line = ""
    now: bool = False
    to: Annotated[str, Field(max_length=100, pattern=NO_CONTROLS)] = ""
    approve_deletes: bool = False
    repair: bool = False
    confirm: str = ""

    def arguments(self) -> dict[str, Any]:
        """As the command line gives them."""
        own: dict[str, dict[str, Any]] = {
            "rewind": {"to": self.to},
            "resync": {"approve_deletes": self.approve_deletes},
            "verify": {"repair": self.repair},
        }
        return own.get(self.kind, {}) | ({"reason": self.reason} if self.reason else {})


def run_of_key(replicator: str, key: str) -> str:
    """Start a run, once for a key of an idempotent request. Returns its id."""
    return trigger_run_once(replicator, f"{replicator} {key}", DagRunTriggeredByType.REST_API)


@router.get("/replicators/{replicator}/commands")
def list_commands(request: Request, replicator: Readable, limit: Limit = 20, cursor: Cursor = "") -> Response:
    """The commands, the newest first, a page at a time, with the paused and blocked tables that they wait for."""
    state = open_state()
    found = state.recent_commands(replicator, limit + 1, after(cursor))
    listed, paging = page(found, limit, lambda command: command.id)
    rows = state.tables(replicator).values()
    return json_response(request, {"commands": [plain_command(one, rows) for one in listed], **paging})


@router.get("/replicators/{replicator}/commands/{command_id}")
def get_command(request: Request, replicator: Readable, command_id: uuid.UUID) -> Response:
    state = open_state()
    command = state.command(str(command_id))
    if command is None or command.replicator != replicator:
        raise NotFound.of("API003", f"{replicator} has no command {command_id}")
    return json_response(request, plain_command(command, state.tables(replicator).values()))


@router.post("/replicators/{replicator}/commands", status_code=status.HTTP_202_ACCEPTED)
def create_command(
    replicator: Editable, body: TableCommand, user: User, key: Key, seen: Version = ""
) -> dict[str, Any]:
    """Pause, resume, rewind, resync or compare tables. The key makes a repeated request one command and one run.
    ``If-Match``: the ``version`` of the replicator as its sender has seen it; a rewind needs it."""
    kind = CommandKind(body.kind)
    if kind is CommandKind.REWIND and not seen:
        raise HTTPException(status.HTTP_428_PRECONDITION_REQUIRED, "a rewind needs the header If-Match")
    if kind in LOSES_ROWS:
        require_typed_name(f"the {kind}", replicator, body.confirm, CONFIRM)
    one = opened(open_state(), replicator)
    tables = require_tables(one, body.tables)
    if body.now:
        require_runnable_dag(replicator)
    if seen and one.state.command_of_key(replicator, key) is None:
        require_version(replicator, seen, one.state.tables(replicator).values())
    command = submit_command(one, kind, tables, body.arguments(), key, user.get_name())
    rows = one.state.tables(replicator).values()
    starts = body.now and not command.finished and not needs_resume(command, rows)
    return {**plain_command(command, rows), "started_run": run_of_key(replicator, key) if starts else ""}


@router.get("/replicators/{replicator}/runs")
def list_runs(request: Request, replicator: Readable, limit: Limit = 50, cursor: Cursor = "") -> Response:
    """The runs of the DAG, the newest first, a page at a time."""
    found = recent_runs(replicator, limit + 1, after(cursor))
    runs, paging = page(found, limit, lambda run: run.run_id)
    return json_response(request, {"runs": to_plain(runs), **paging})


@router.post("/replicators/{replicator}/runs", status_code=status.HTTP_202_ACCEPTED)
def create_run(replicator: Editable, key: Key) -> dict[str, Any]:
    """Start a run now. The key makes a repeated request one run."""
    require_entry(open_state(), replicator)
    require_runnable_dag(replicator)
    return {"run_id": run_of_key(replicator, key)}
