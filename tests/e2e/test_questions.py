"""A schema change asks an operator, who answers on the command line; the run that waited in Airflow goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

TABLES = """\
tables:
  - source: public.customers
  - source: public.page_views
    schema_changes: {narrow: ask}
"""
QUESTIONS = "asking_questions"


def test_an_answer_on_the_command_line_ends_the_question_in_airflow(scenario: Callable[..., Scenario]) -> None:
    asking = scenario("asking", tables=TABLES)
    asking.must_tick()
    asking.execute("update customers set name = 'Ada' where id = 7")
    asking.execute("alter table page_views alter column milliseconds type smallint")
    until(lambda: blocked(asking), "the table to wait", every_s=0.5)
    asking.airflow.wait_for_dag(QUESTIONS)
    asking.tick()  # again: a question is asked once
    until(lambda: waiting(asking), "the question", every_s=0.5)
    ((run_id, subject, body),) = waiting(asking)
    assert "public.page_views" in subject and "int32 to int16" in body

    (question,) = asking.cdc("decide", "asking")["questions"]
    assert run_id == f"question__{question['id']}" and question["answers"] == ["ignore", "resync", "leave"]
    decided = asking.cdc("decide", "asking", "--answer", "resync", "--reason", "a smaller type is fine")
    assert decided["decision"]["question"] == question["id"]
    assert asking.airflow.wait(QUESTIONS, run_id) == "success"
    assert asking.finish(run_id)["run"] == "success", asking.failed_logs(run_id)
    assert not waiting(asking) and not asking.cdc("decide", "asking")["questions"]
    asking.verify()


def blocked(asking: Scenario) -> bool:
    """After another run."""
    asking.tick()
    return any(row["state"] == "blocked" for row in asking.cdc("status", "asking", check=False)["tables"])


def waiting(asking: Scenario) -> list[tuple[Any, ...]]:
    """Run id, subject and body of each question without an answer."""
    path = f"/dags/{QUESTIONS}/dagRuns/~/hitlDetails"
    details = asking.airflow.request("GET", path, params={"response_received": "false"})["hitl_details"]
    return [(one["task_instance"]["dag_run_id"], one["subject"], one["body"]) for one in details]
