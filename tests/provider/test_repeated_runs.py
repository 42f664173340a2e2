"""Runs that are cleared after their end, or opened again under the same id: they act on what they find now, and on no
result of an earlier opening."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Hole
from airflow_cdc_provider.core.spec.definition import Reconcile
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from tests.provider.run_harness import RunHarness

A, B = "public.a", "public.b"


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    assert harness.run("r1").problems == ()
    return harness


def stages_with(harness: RunHarness, outcome: Outcome, failed: tuple[str, ...] = ()) -> None:
    """The run r2: the stage of the table a ends with this outcome, and b is merged."""
    harness.source.change(A, B)
    decision = harness.open("r2")
    harness.extract(decision.plan)
    harness.merge(decision.plan, [B])
    question = Question("q1", A, 2, ("renamed",), (Answer.RESYNC,)) if outcome is Outcome.BLOCKED else None
    problem = Problem("SCH001", "a column was renamed", found="v", do="resync")
    result = TableResult(A, outcome, problem=problem, question=question)
    harness.write_result("r2", "stage", StepKind.STAGE, [result])
    assert [problem.code for problem in harness.close("r2", failed).problems if problem.table]
    if outcome is Outcome.BLOCKED:
        harness.request(CommandKind.RESUME, A)
    assert harness.run("r3").problems == ()


def healthy(harness: RunHarness) -> tuple[TableState, TableState, int]:
    return harness.control(A).state.name, harness.state.tables("shop")[A].state, harness.control(A).fence


@pytest.mark.parametrize("outcome", [Outcome.BLOCKED, Outcome.FAILING])
@pytest.mark.parametrize("cleared", ["the whole run", "close_window"])
def test_what_a_table_had_before_it_went_on_is_no_problem_of_a_cleared_run(
    harness: RunHarness, outcome: Outcome, cleared: str
) -> None:
    harness.definition = replace(harness.definition, retry_for=timedelta(0))
    stages_with(harness, outcome)
    before = healthy(harness)
    assert before[:2] == (TableState.REPLICATING, TableState.REPLICATING)
    if cleared == "the whole run":
        assert harness.open("r2").follow == ("close_window",)
        assert unanswered(harness.replicator, "r2") == ()
    closing = harness.close("r2")
    assert (closing.problems, healthy(harness)) == ((), before)
    if cleared == "the whole run":
        assert (closing.moved, closing.counts) == ({}, {}), "its earlier opening changed b"
    assert harness.run("r4").problems == ()


def test_a_failed_task_of_a_cleared_close_is_no_problem_of_a_table_that_went_on(harness: RunHarness) -> None:
    harness.source.change(A, B)
    harness.extract(harness.open("r2").plan)
    assert {problem.code for problem in harness.close("r2", ["stage"]).problems} == {"RUN002", "RUN005"}
    assert harness.run("r3").problems == ()
    assert [problem.code for problem in harness.close("r2", ["stage"]).problems] == ["RUN005"]
    assert harness.state.tables("shop")[A].state is TableState.REPLICATING


def test_the_decision_of_a_cleared_close_blocks_no_table_that_went_on(harness: RunHarness) -> None:
    blocked = State(TableState.BLOCKED, utc_now(), "a column was renamed", "resync")
    harness.commit("public_a", harness.control(A).fenced(state=blocked))
    harness.source.change(A)
    harness.open("r2")
    assert [problem.code for problem in harness.close("r2").problems] == ["RUN003"]
    harness.request(CommandKind.RESUME, A)
    assert harness.run("r3").problems == ()
    assert harness.close("r2").problems == ()
    assert harness.state.tables("shop")[A].state is TableState.REPLICATING


def test_a_problem_stands_while_only_the_run_itself_has_committed(harness: RunHarness) -> None:
    """A stage ends at a change of the columns, and the merge applies what is before it."""
    harness.source.change(A)
    decision = harness.open("r2")
    harness.extract(decision.plan)
    harness.merge(decision.plan)
    problem = Problem("SCH001", "a column was renamed", do="resync")
    harness.write_result("r2", "stage", StepKind.STAGE, [TableResult(A, Outcome.BLOCKED, problem=problem)])
    for _ in range(2):
        assert [problem.code for problem in harness.close("r2").problems] == ["RUN003"]
        assert harness.control(A).state.name is TableState.BLOCKED


def test_a_cleared_run_copies_no_table_for_a_hole_that_its_earlier_opening_found(harness: RunHarness) -> None:
    source = replace(harness.definition.source, reconcile=Reconcile.AUTO)
    harness.definition = replace(harness.definition, source=source)
    harness.source.change(A, B)
    decision = harness.open("r2")
    harness.extract(decision.plan, (Hole("overflow", A, "zz"),))
    harness.merge(decision.plan)
    assert find_holes(harness.replicator, "r2", print) == (A,)
    assert harness.reconcile("r2") == (A,)
    assert harness.close("r2").problems == ()
    harness.request(CommandKind.RESYNC, B)
    harness.open("r2")
    assert pause_stream(harness.replicator, "r2", print) == (B,)


def test_holes_that_a_run_found_before_an_upgrade_are_read(harness: RunHarness) -> None:
    run = harness.replicator.run("r1")
    run.store.write(f"{run.path}/holes.json", b'["public.a"]')
    assert (run.holes(""), run.holes("later")) == ((A,), ())


@pytest.mark.parametrize("opened", ["once", "again"])
def test_a_comparison_that_failed_proves_nothing_by_what_an_earlier_one_found(harness: RunHarness, opened: str) -> None:
    """The task dies before it submits a job. An earlier attempt has a result."""
    first = harness.request(CommandKind.VERIFY)
    harness.spark(harness.open("r2"))
    if opened == "again":
        assert harness.close("r2").problems == ()
        shown = harness.state.command(first.id)
        assert shown is not None and shown.outcome.startswith("identical")
        first = harness.request(CommandKind.VERIFY)
        assert harness.open("r2").follow == ("verify", "close_window")
    before = harness.state.tables("shop")[A].verified
    assert [problem.code for problem in harness.close("r2", ["verify"]).problems] == ["RUN005"]
    ended = harness.state.command(first.id)
    assert ended is not None and ended.status is CommandStatus.FAILED
    assert ended.result == {"tables": [], "identical": False}
    assert harness.state.tables("shop")[A].verified == before


def test_a_skipped_comparison_leaves_its_command_to_a_later_run(harness: RunHarness) -> None:
    command = harness.request(CommandKind.VERIFY)
    assert harness.open("r2").follow == ("verify", "close_window")
    assert harness.close("r2").problems == ()
    assert [one.id for one in harness.state.pending("shop")] == [command.id]
    harness.run("r3")
    ended = harness.state.command(command.id)
    assert ended is not None and ended.outcome.startswith("identical")


def test_a_cleared_close_gives_its_comparison_no_later_time(harness: RunHarness) -> None:
    harness.request(CommandKind.VERIFY)
    decision = harness.open("r2")
    harness.spark(decision)
    for _ in range(2):
        harness.close("r2")
        shown = harness.state.tables("shop")[A].verified
        assert shown is not None and shown.at == decision.at
    harness.request(CommandKind.VERIFY)
    harness.comparison |= {"identical": False, "differing": 1, "differences": ["1"]}
    harness.run("r3")
    harness.close("r2")
    shown = harness.state.tables("shop")[A].verified
    assert shown is not None and not shown.identical, "the comparison of r3 is newer"
