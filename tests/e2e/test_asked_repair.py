"""A comparison on its schedule finds a damaged row and asks an operator, whose answer in Airflow repairs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.delta_tables import read
from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

TABLES = """\
tables:
  - source: public.customers
"""
QUESTIONS = "damaged_questions"


def test_an_answer_in_airflow_repairs_what_a_comparison_found(scenario: Callable[..., Scenario]) -> None:
    damaged = scenario("damaged", tables=TABLES, more="verify: {every: 1s, repair: ask}\n")
    damaged.must_tick()
    copy = DeltaTable(damaged.lake / "customers")
    copy.update(updates={"name": "'broken'"}, predicate="id = 7")

    damaged.airflow.wait_for_dag(QUESTIONS)
    until(lambda: questions(damaged), "the question", every_s=0.5)
    (question,) = questions(damaged)
    assert question["subject"].startswith("damaged: ") and "public.customers" in question["subject"]
    damaged.execute("update customers set name = 'Bea' where id = 8")
    damaged.tick()
    assert names(damaged)[8] == "Bea", "the table goes on"
    assert names(damaged)[7] == "broken", "no operator has answered"

    instance = question["task_instance"]
    place = f"/dags/{QUESTIONS}/dagRuns/{instance['dag_run_id']}/taskInstances/{instance['task_id']}/-1/hitlDetails"
    damaged.airflow.request("PATCH", place, json={"chosen_options": ["repair"], "params_input": {}})
    assert damaged.airflow.wait(QUESTIONS, instance["dag_run_id"]) == "success"
    until(lambda: damaged.tick() and names(damaged)[7] != "broken", "the repair", every_s=0.5)
    damaged.verify()


def questions(damaged: Scenario) -> list[dict[str, Any]]:
    """That wait in Airflow, after another run."""
    damaged.tick()
    place = f"/dags/{QUESTIONS}/dagRuns/~/hitlDetails"
    found = damaged.airflow.request("GET", place, params={"response_received": "false"}, missing_is_fine=True)
    details: list[dict[str, Any]] = found["hitl_details"] if found else []
    return details


def names(damaged: Scenario) -> dict[int, str]:
    columns = read(DeltaTable(damaged.lake / "customers"), "id", "name").to_pydict()
    return dict(zip(columns["id"], columns["name"], strict=True))
