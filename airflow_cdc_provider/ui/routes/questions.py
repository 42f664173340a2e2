"""Questions that wait for a person, and their answers: what the command line does, with the same audit."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response, status
from pydantic import BaseModel, ConfigDict

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.samples import sample_of
from airflow_cdc_provider.core.decisions.typed_names import require_typed_name
from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag
from airflow_cdc_provider.hooks.open_questions import close_question
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import Editable, Readable, ReadableWithValues, User
from airflow_cdc_provider.ui.paging import Cursor, Limit, after, page
from airflow_cdc_provider.ui.registered import opened
from airflow_cdc_provider.ui.responses import json_response
from airflow_cdc_provider.ui.routes.commands import CONFIRM, Key, run_of_key
from airflow_cdc_provider.ui.texts import Id, Line

router = APIRouter()


class QuestionAnswer(BaseModel):
    """``confirm``: the name of the replicator, for the answer ``resync``."""

    model_config = ConfigDict(extra="forbid")

    answer: Answer
    reason: Line = ""
    now: bool = False
    confirm: str = ""


@router.get("/replicators/{replicator}/questions")
def list_questions(request: Request, replicator: Readable, limit: Limit = 50, cursor: Cursor = "") -> Response:
    """The questions that wait for a person, by id, a page at a time."""
    start, found = after(cursor), open_questions(opened(open_state(), replicator)).values()
    waiting = sorted((one for one in found if one.id > start), key=lambda one: one.id)
    listed, paging = page(waiting, limit, lambda question: question.id)
    return json_response(request, {"questions": to_plain(listed), **paging})


@router.get("/replicators/{replicator}/questions/{question_id}/sample")
def get_sample(request: Request, replicator: ReadableWithValues, question_id: Id) -> Response:
    """How many changes wait for an answer, and values of some of them, for those who may edit the DAG."""
    one = opened(open_state(), replicator)
    return json_response(request, to_plain(sample_of(one, _open_question(one, question_id))))


@router.post("/replicators/{replicator}/questions/{question_id}/answer", status_code=status.HTTP_202_ACCEPTED)
def answer(replicator: Editable, question_id: Id, body: QuestionAnswer, user: User, key: Key) -> dict[str, Any]:
    """Answer a question. Answering again in the same way changes nothing, and starts no second run with the same
    key."""
    if body.answer is Answer.RESYNC:
        require_typed_name("the resync", replicator, body.confirm, CONFIRM)
    one = opened(open_state(), replicator)
    question = _open_question(one, question_id)
    if body.now:
        require_runnable_dag(replicator)
    decision = answer_open_question(one, question, body.answer, user.get_name(), body.reason)
    close_question(replicator, decision)
    return {**to_plain(decision), "started_run": run_of_key(replicator, key) if body.now else ""}


def _open_question(one: Replicator, question_id: str) -> Question:
    found = [question for question in open_questions(one).values() if question.id == question_id]
    if not found:
        raise NotFound.of("API004", f"{one.name} has no open question {question_id}", do="list the open questions")
    return found[0]
