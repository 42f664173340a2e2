"""Answers that come too late, twice, or from a process that dies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control import answers
from airflow_cdc_provider.control.answers import answer_open_question, answer_question, open_questions
from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness
from tests.provider.waiting_table import QUESTION, ask


@pytest.fixture
def asking(harness: RunHarness) -> RunHarness:
    replicated(harness)
    ask(harness)
    harness.source.change("public.b")
    harness.run("r2")
    return harness


def answer(asking: RunHarness, chosen: Answer = Answer.RESYNC) -> str:
    return answer_open_question(asking.replicator, QUESTION, chosen, "ada", "asked the team").id


def test_an_answer_to_a_question_that_another_change_has_replaced_is_refused(asking: RunHarness) -> None:
    ask(asking, replace(QUESTION, id="fedcba9876543210", changes=("column name is dropped",)))
    with pytest.raises(CommandRefused, match=r"CMD043.*another question: column name is dropped.*nothing was decided"):
        answer(asking)
    assert asking.replicator.log.decisions() == []


def test_an_answer_about_a_table_that_goes_on_is_refused(asking: RunHarness) -> None:
    control = asking.control("public.a")
    state = State(TableState.REPLICATING, "2026-11-27T13:00:00+00:00")
    asking.commit("public_a", replace(control, fence=control.fence + 1, state=state))
    with pytest.raises(CommandRefused, match=r"CMD043.*no question: the table was copied again, resumed or removed"):
        answer(asking)
    assert asking.replicator.log.decisions() == []


def test_a_second_answer_is_the_first_one_and_another_one_is_refused(asking: RunHarness) -> None:
    assert answer(asking) == answer(asking)
    with pytest.raises(CommandRefused, match=r"CMD041.*resync by ada"):
        answer(asking, Answer.LEAVE)
    (decision,) = asking.replicator.log.decisions()
    assert (decision.answer, decision.reason, decision.decided_by) == (Answer.RESYNC, "asked the team", "ada")


def test_of_two_answers_at_once_the_first_one_counts_and_the_other_is_refused(
    asking: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = replace(QUESTION, answers=(Answer.APPLY, *QUESTION.answers))
    ask(asking, wider)
    with_number, others = ChangeLog._with_number, [Answer.APPLY]

    def late(log: ChangeLog, decision: OperatorDecision, number: int) -> OperatorDecision | None:
        if others:  # another operator answers after this one has read the decisions
            answer_question(asking.replicator, wider, others.pop(), "bob", "")
        return with_number(log, decision, number)

    monkeypatch.setattr(ChangeLog, "_with_number", late)
    with pytest.raises(CommandRefused, match=r"CMD041.*apply by bob"):
        answer(asking)
    assert [one.decided_by for one in asking.replicator.log.decisions()] == ["bob"]


def test_an_answer_whose_process_dies_before_it_was_written_is_audited_once(
    asking: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(log: ChangeLog, decision: OperatorDecision, number: int) -> None:
        raise KeyboardInterrupt(decision.id)

    with monkeypatch.context() as dying:
        dying.setattr(ChangeLog, "_with_number", die)
        with pytest.raises(KeyboardInterrupt):
            answer(asking)
    answer(asking)
    entries = asking.replicator.state.audit("shop", 100)
    assert [entry.actor for entry in entries if entry.action == "decide"] == ["ada"]


def test_an_answer_whose_process_dies_after_it_was_written_counts_once(
    asking: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(answers, "failpoint", die)
    with pytest.raises(KeyboardInterrupt, match=r"decision\.after"):
        answer(asking)
    monkeypatch.undo()
    answer(asking)
    assert len(asking.replicator.log.decisions()) == 1
    fence = asking.control("public.a").fence
    asking.run("r3")
    assert asking.control("public.a").fence > fence and open_questions(asking.replicator) == {}
    fence = asking.control("public.a").fence
    asking.run("r4")
    assert asking.control("public.a").fence == fence, "the answer has its effect once"
