"""What would happen: the plan of the next run, what can be copied, and drafts of a YAML. Nothing is written."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from airflow_cdc_provider.control.assessments import assess_replicator, only
from airflow_cdc_provider.control.dry_run import dry_run, plain_plan
from airflow_cdc_provider.core.assessment.plain import plain_assessment
from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks.connections import connection_ids
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.ui.access import Editable, ReadableLive, User, require_connections
from airflow_cdc_provider.ui.registered import open_definition, opened
from airflow_cdc_provider.ui.responses import MAX_BODY_BYTES, json_response

router = APIRouter()

DRAFT = "draft.yaml"


class Draft(BaseModel):
    """``plan``: also what its first run would do, with its source as it is now."""

    model_config = ConfigDict(extra="forbid")

    yaml: Annotated[str, Field(max_length=MAX_BODY_BYTES)]
    plan: bool = False


@router.get("/replicators/{replicator}/plan")
def get_plan(request: Request, replicator: ReadableLive) -> Response:
    """What the next run would do."""
    return json_response(request, plain_plan(dry_run(opened(open_state(), replicator))))


@router.get("/replicators/{replicator}/assessment")
def get_assessment(
    request: Request, replicator: ReadableLive, table: Annotated[list[str] | None, Query(max_length=1000)] = None
) -> Response:
    """Which tables and columns can be copied, how, and about how long first copies take. ``table``: only these."""
    assessment = assess_replicator(opened(open_state(), replicator))
    return json_response(request, plain_assessment(only(assessment, table) if table else assessment))


@router.post("/replicators/{replicator}/drafts")
def check_draft(replicator: Editable, body: Draft, user: User) -> dict[str, Any]:
    """Validate a YAML of this replicator, or of one that does not exist yet. A plan uses only connections that the
    replicator has already, or that the user may read."""
    loaded = load_text(body.yaml.encode(), DRAFT)
    definition = loaded.definition
    if definition.name != replicator:
        raise DefinitionInvalid.of(
            "API005",
            "the draft is of another replicator",
            where=f"{DRAFT}:{loaded.line}",
            found=definition.name,
            allowed=replicator,
            do=f"set `name: {replicator}`, or send it to the route of {definition.name}",
        )
    answer: dict[str, Any] = {
        "definition": to_plain(definition),
        "warnings": to_plain(loaded.warnings),
        "plan": None,
    }
    if body.plan:
        state = open_state()
        entry = state.replicators.get(replicator)
        used = connection_ids(entry.definition) if entry and not entry.gone else frozenset[str]()
        require_connections(user, connection_ids(definition) - used)
        answer["plan"] = plain_plan(dry_run(open_definition(state, definition)))
    return answer
