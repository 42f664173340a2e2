"""A table that waits for an operator's answer."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.states import State, TableState
from tests.provider.run_harness import RunHarness

QUESTION = Question(
    "0123456789abcdef",
    "public.a",
    1,
    ("column name changes from text to int64",),
    (Answer.RESYNC, Answer.LEAVE),
    ("ALTER TABLE public_a ALTER COLUMN name TYPE bigint",),
    ("name",),
)


def ask(harness: RunHarness, question: Question = QUESTION) -> None:
    """``public.a`` waits for an answer."""
    control = harness.control("public.a")
    state = State(TableState.BLOCKED, "2026-11-27T12:00:00+00:00", "a type changed", "decide", question=question)
    harness.commit("public_a", replace(control, fence=control.fence + 1, state=state))
