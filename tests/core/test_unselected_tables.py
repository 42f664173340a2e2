"""Why a run could not select a copy: the first reason that counts."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.listed_tables import GONE
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.run_plan import Mode, RunPlan
from airflow_cdc_provider.core.errors import Problem

PLAN = RunPlan("r", Mode.STREAM, "log", "owner", 1, {}, (), 1, {}, {})
GONE_A, KIND_A = Problem(GONE, "gone", where="s.a"), Problem("SRC150", "a view", where="s.a")
ERROR_A, TOO_MANY = Problem("DEF042", "no column", where="s.a"), Problem("DEF024", "too many", where="shop")


@pytest.mark.parametrize(
    ("copy", "problems", "code"),
    [
        ("s.a", (KIND_A, GONE_A), GONE),
        ("s.a", (ERROR_A,), "DEF042"),
        ("s.a@wh", (ERROR_A,), "DEF042"),
        ("s.a@wh:history", (ERROR_A,), "DEF042"),
        ("s.a@wh", (GONE_A,), ""),
        ("s.b", (GONE_A, ERROR_A), ""),
        ("s.b@wh", (TOO_MANY,), "DEF024"),
    ],
)
def test_why_a_copy_was_not_selected(copy: str, problems: tuple[Problem, ...], code: str) -> None:
    problem = RunDecision("shop", PLAN, "2026-01-01", unselected=problems).why_unselected(copy)
    assert (problem.code if problem else "") == code
