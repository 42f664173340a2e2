"""An answer that an operator gave in Airflow, under Required Actions or by its REST API, becomes a decision."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.operators.questions import FindQuestionsOperator, RecordAnswerOperator
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.provider.waiting_table import QUESTION, ask

ADA = {"id": "7", "name": "ada"}


@pytest.fixture
def asking(cdc: CommandLine, harness: RunHarness) -> RunHarness:
    replicated(harness)
    ask(harness)
    harness.source.change("public.b")
    harness.run("r2")
    return harness


def record(harness: RunHarness, answer: Answer, user: dict[str, str] | None = ADA) -> dict[str, Any]:
    """``user``: None if Airflow does not know who answered."""
    given = {"chosen_options": [answer.value], "responded_by_user": user}
    context: Any = {
        "ti": SimpleNamespace(xcom_pull=lambda task_ids: given if task_ids == "ask" else None),
        "dag_run": SimpleNamespace(conf={"question": to_plain(QUESTION)}),
    }
    definition = to_plain(harness.replicator.definition)
    return RecordAnswerOperator(task_id="record", definition=definition, ask="ask").execute(context)


def test_an_answer_is_recorded_once_with_the_name_of_its_user(asking: RunHarness) -> None:
    first, again = record(asking, Answer.RESYNC), record(asking, Answer.RESYNC)
    (decision,) = asking.replicator.log.decisions()
    assert first == again == {"answer": "resync", "decision": decision.id}
    assert (decision.decided_by, decision.reason) == ("ada", "answered in Airflow")
    with pytest.raises(AirflowFailException, match=r"CMD041.*resync by ada"):
        record(asking, Answer.LEAVE)


@pytest.mark.parametrize(("user", "name"), [(None, "unknown"), ({"id": "7"}, "7")])
def test_an_answer_of_a_user_without_a_name_is_recorded(
    asking: RunHarness, user: dict[str, str] | None, name: str
) -> None:
    record(asking, Answer.LEAVE, user)
    assert [one.decided_by for one in asking.replicator.log.decisions()] == [name]


def test_an_answer_that_comes_too_late_fails_without_a_retry_and_decides_nothing(asking: RunHarness) -> None:
    control = asking.control("public.a")
    replicating = State(TableState.REPLICATING, "2026-11-27T13:00:00+00:00")
    asking.commit("public_a", replace(control, fence=control.fence + 1, state=replicating))
    with pytest.raises(AirflowFailException, match="CMD043"):
        record(asking, Answer.RESYNC)
    assert asking.replicator.log.decisions() == []


def test_the_next_run_carries_a_resync_out(asking: RunHarness) -> None:
    record(asking, Answer.RESYNC)
    plan = asking.open("r3").plan
    assert plan is not None and plan.reconcile == ("public.a",)


def test_a_question_is_asked_until_it_is_answered(asking: RunHarness) -> None:
    operator = FindQuestionsOperator(task_id="find", definition=to_plain(asking.replicator.definition))
    context: Any = {"dag_run": SimpleNamespace(run_id="r2")}
    (asked,) = operator.execute(context)
    assert asked["trigger_run_id"].endswith(QUESTION.id) and asked["conf"]["question"] == to_plain(QUESTION)
    assert QUESTION.statements[0] in asked["conf"]["body"]
    record(asking, Answer.LEAVE)
    assert operator.execute(context) == []
