"""A table or target that the YAML no longer selects: its commands end, and no operator is asked about it any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.control.reconcile import pause_stream
from airflow_cdc_provider.core.decisions.alerts import alerts_of
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, new_decision
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.decisions.summaries import summarize
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnNewTable
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.verified import Verified
from tests.provider.bad_records import carry
from tests.provider.run_harness import RunHarness, schema
from tests.provider.waiting_table import QUESTION, ask

PAUSE, RESUME, RESYNC, VERIFY = CommandKind.PAUSE, CommandKind.RESUME, CommandKind.RESYNC, CommandKind.VERIFY
A, B = "public.a", "public.b"


@pytest.fixture(autouse=True)
def copied(harness: RunHarness) -> None:
    assert harness.run("r1").problems == ()


def select(harness: RunHarness, *tables: str) -> None:
    harness.definition = replace(harness.definition, tables=tuple(map(TableRule, tables)))


def command_of(harness: RunHarness, command: Command) -> Command:
    found = harness.state.command(command.id)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [RESYNC, VERIFY, CommandKind.REPLAY, PAUSE])
def test_a_command_about_a_table_that_left_the_yaml_ends_and_has_no_effect_when_the_table_returns(
    harness: RunHarness, kind: CommandKind
) -> None:
    request = harness.request(kind, B, records=["r"], approve_deletes=True)
    select(harness, A)
    assert dry_run(harness.replicator).has_work
    assert harness.run("r2").problems == ()
    ended = command_of(harness, request)
    assert ended.status is CommandStatus.FAILED and B in ended.outcome
    if kind is not PAUSE:
        assert ended.outcome == "not carried out: the YAML no longer selects public.b"
    assert not dry_run(harness.replicator).has_work
    select(harness, A, B)
    decision = harness.open("r3")
    assert (decision.plan.reconcile, decision.plan.compare, decision.plan.commands) == ((), (), ())
    assert harness.control(B).state.name is TableState.REPLICATING
    assert harness.replicator.log.decisions() == []


def test_a_run_does_not_end_a_command_that_came_after_its_decision(harness: RunHarness) -> None:
    select(harness, A)
    harness.open("r2")
    select(harness, A, B)
    request = harness.request(RESYNC, B)
    harness.close("r2")
    assert not command_of(harness, request).finished


@pytest.mark.parametrize("named", [(), (A, B)])
@pytest.mark.parametrize("kind", [RESYNC, VERIFY])
def test_a_command_is_not_done_without_a_table_that_the_source_does_not_list(
    harness: RunHarness, kind: CommandKind, named: tuple[str, ...]
) -> None:
    select(harness, A, B)
    listed = harness.source.read()["tables"]
    harness.source.write(tables=[one for one in listed if one["table"] != B])
    request = harness.request(kind, *named)
    harness.run("r2")
    ended = command_of(harness, request)
    assert B in ended.outcome and not ended.result.get("identical"), ended


def test_a_table_that_left_long_ago_is_in_no_outcome(harness: RunHarness) -> None:
    select(harness, A)
    assert harness.run("r2").problems == ()
    request = harness.request(RESYNC)
    assert harness.run("r3").problems == ()
    assert B not in command_of(harness, request).outcome


@pytest.mark.parametrize("named", [(), (A, B)])
def test_a_command_that_waits_for_one_table_has_ended_for_another_that_left_the_yaml(
    harness: RunHarness, named: tuple[str, ...]
) -> None:
    harness.request(PAUSE, A)
    resync = harness.request(RESYNC, *named)
    select(harness, A)
    assert harness.run("r2").problems == ()
    assert not command_of(harness, resync).finished
    assert not dry_run(harness.replicator).has_work
    select(harness, A, B)
    harness.run("r3")
    assert harness.control(B).resyncs == (), "it returns as it was"
    harness.request(RESUME, A)
    harness.run("r4")
    ended = command_of(harness, resync)
    assert ended.status is CommandStatus.DONE
    assert ended.outcome == "copied again: public.a; not carried out: the YAML no longer selects public.b"


def test_the_outcome_names_what_was_carried_out_before_the_last_table_left(harness: RunHarness) -> None:
    harness.request(PAUSE, B)
    resync = harness.request(RESYNC, A, B)
    assert harness.run("r2").problems == ()
    assert not command_of(harness, resync).finished
    select(harness, "public.c")
    harness.run("r3")
    ended = command_of(harness, resync)
    assert ended.outcome == "copied again: public.a; not carried out: the YAML no longer selects public.b"
    assert ended.status is CommandStatus.DONE
    assert ended.result["left"] == {B: "the YAML no longer selects it"}


def test_a_comparison_of_all_tables_waits_for_a_run_that_can_compare_them(harness: RunHarness) -> None:
    """The run copies a new table, and another one left."""
    verify = harness.request(VERIFY)
    harness.source.write(tables=[*harness.source.read()["tables"], to_plain(schema("public.c"))])
    select(harness, A, "public.c")
    assert harness.run("r2").problems == ()
    assert not command_of(harness, verify).finished
    assert harness.run("r3").problems == ()
    ended = command_of(harness, verify)
    assert ended.status is CommandStatus.DONE and ended.outcome.startswith("identical")


def test_the_result_of_a_comparison_has_the_tables_that_were_compared(harness: RunHarness) -> None:
    request = harness.request(VERIFY, A, B)
    select(harness, A)
    assert harness.run("r2").problems == ()
    result = command_of(harness, request).result
    assert ([(one["table"], one["identical"]) for one in result["tables"]], result["identical"]) == ([(A, True)], False)
    assert result["left"] == {B: "the YAML no longer selects it"}


def test_a_resync_goes_on_for_one_table_when_another_is_blocked(harness: RunHarness) -> None:
    """Its approval of deletes counts as long."""
    resync = harness.request(RESYNC, A, B, approve_deletes=True)
    harness.open("r2")
    assert pause_stream(harness.replicator, "r2", harness.log_lines.append) == (A, B)
    results = [TableResult(A, Outcome.BLOCKED, problem=Problem("CPY006", "no")), TableResult(B, Outcome.FAILING)]
    harness.write_result("r2", "reconcile.resync", StepKind.RESYNC, results)
    assert harness.close("r2").problems
    assert command_of(harness, resync).ended == {A: "blocked"}
    decision = harness.open("r3")
    assert decision.plan.reconcile == (B,) and decision.plan.named([B])[0].resyncs == (resync.id,)
    harness.reconcile("r3")
    harness.close("r3")
    ended = command_of(harness, resync)
    assert (ended.status, ended.outcome) == (CommandStatus.FAILED, "blocked: public.a; copied again: public.b")


def test_no_record_of_a_table_that_left_is_called_replayed(harness: RunHarness) -> None:
    request = harness.request(CommandKind.REPLAY, A, B, records=["one", "two"])
    for table, record in ((A, "one"), (B, "two")):
        decision = new_decision(DecisionKind.REPLAY, "shop", table, "ann", record, record=record)
        harness.replicator.log.write_decision(decision)
    select(harness, A)
    harness.run("r2")
    ended = command_of(harness, request)
    assert ended.outcome == "replay: one; not carried out: the YAML no longer selects public.b"
    assert [(one["id"], one["waiting"]) for one in ended.result["records"]] == [("one", False), ("two", True)]


def test_a_command_about_a_table_that_the_source_does_not_list_now_waits(harness: RunHarness) -> None:
    select(harness, A, B)
    resync = harness.request(RESYNC, B)
    listed = harness.source.read()["tables"]
    harness.source.write(tables=[one for one in listed if one["table"] != B])
    assert harness.run("r2").problems
    assert not command_of(harness, resync).finished
    assert not dry_run(harness.replicator).has_work
    harness.source.write(tables=listed)
    harness.run("r3")
    assert command_of(harness, resync).outcome == "copied again: public.b"


def test_a_command_about_a_table_that_a_pattern_selects_and_the_source_does_not_list_ends_with_this_reason(
    harness: RunHarness,
) -> None:
    request = harness.request(RESYNC, B, approve_deletes=True)
    select(harness, "public.*")
    listed = harness.source.read()["tables"]
    harness.source.write(tables=[one for one in listed if one["table"] != B])
    assert harness.run("r2").problems == ()
    assert command_of(harness, request).outcome == "not carried out: the source no longer lists public.b"
    harness.source.write(tables=listed)
    assert harness.open("r3").plan.reconcile == ()


def shown(harness: RunHarness) -> list[tuple[str, str]]:
    """The alerts, except that a table is late."""
    alerts = alerts_of(harness.state.tables("shop").values(), timedelta(days=9), harness.state.now())
    return [(one.table, one.kind.value) for one in alerts]


def test_no_operator_is_asked_about_a_table_that_left_the_yaml(harness: RunHarness) -> None:
    """Neither about its schema, nor about rows that differ, nor about its records in quarantine."""
    ask(harness)
    harness.commit("public_a", harness.control(A).fenced(carry=carry(harness, "one")))
    harness.source.change(B)
    harness.run("r2")
    differs = replace(QUESTION, table=B, answers=(Answer.REPAIR, Answer.LEAVE))
    row = replace(harness.state.tables("shop")[B], verified=Verified("2026-01-01", 1, False, 1, question=differs))
    harness.state.change_tables("shop", lambda _: [row])
    assert shown(harness) == [(A, "question"), (A, "quarantine"), (B, "question")]
    assert open_questions(harness.replicator).keys() == {A, B}
    select(harness, "public.c")
    harness.run("r3")
    assert {row.state for row in harness.state.tables("shop").values()} == {TableState.DROPPED}
    assert shown(harness) == [] and open_questions(harness.replicator) == {}
    summary = summarize(harness.state.tables("shop").values())
    assert (summary.questions, summary.quarantined) == (0, 0)
    select(harness, A, B)
    harness.source.change(B)
    harness.run("r4")
    assert shown(harness) == [(A, "question"), (A, "quarantine")], "the rows that differed are compared again"


@pytest.mark.parametrize("fails", [False, True])
def test_no_operator_is_asked_about_a_new_table_that_is_copied_by_an_answer(harness: RunHarness, fails: bool) -> None:
    harness.definition = replace(harness.definition, new_tables=OnNewTable.ASK)
    harness.source.write(tables=[*harness.source.read()["tables"], to_plain(schema("public.c"))])
    harness.run("r2")
    assert shown(harness) == [("public.c", "question")]
    question = open_questions(harness.replicator)["public.c"]
    answer_open_question(harness.replicator, question, Answer.APPLY, "ada", "")
    decision = harness.open("r3")
    assert decision.plan.copy == ("public.c",) and shown(harness) == []
    if not fails:
        harness.spark(decision)
    harness.close("r3", ["snapshot"] if fails else [])
    row = harness.state.tables("shop")["public.c"]
    assert row.state is (TableState.FAILING if fails else TableState.REPLICATING)
    assert (row.question, row.open_question) == (None, None)
