"""Which tables a run compares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_decision import decide
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.proof.schedule import DueComparison
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.identity import UnloggedChanges
from airflow_cdc_provider.core.table.states import TableState
from tests.core.test_decide import LOST, NEW, A, B, command, control, facts, table


def test_tables_are_compared_when_that_is_due_and_the_others_catch_up() -> None:
    due = replace(A, due=DueComparison(repair=True))
    decision = decide(facts(due, B, stream=NEW))
    assert (decision.follow, decision.plan.mode) == (("verify", "close_window"), Mode.VERIFY)
    assert (decision.plan.compare, decision.plan.repair_tables) == (("public.a",), ("public.a",))
    assert decision.plan.stream == ("public.a", "public.b")
    assert decide(facts(due, B, stream_lane=False)).follow == ("close_window",)
    assert decide(facts(due, table("public.c"), stream=NEW)).plan.compare == ()
    assert decide(facts(due, B, stream=replace(NEW, lost=LOST))).plan.compare == ()


def test_a_sample_is_compared_unless_a_command_or_a_rewrite_needs_all_rows() -> None:
    due = replace(A, due=DueComparison(sampled=True, after=("7",)))
    assert decide(facts(due, B)).plan.sampled == {"public.a": ("7",)}
    assert decide(facts(due, B, commands=(command(CommandKind.VERIFY),))).plan.sampled == {}
    for changes in (UnloggedChanges(rewritten=True), UnloggedChanges(doubted="the publication was altered")):
        plan = decide(facts(replace(due, unlogged=changes), B)).plan
        assert (plan.sampled, plan.compare) == ({}, ("public.a",))


def test_a_command_repairs_the_tables_that_it_names() -> None:
    repair = replace(command(CommandKind.VERIFY, "public.b"), arguments={"repair": True})
    plan = decide(facts(A, B, commands=(repair,))).plan
    assert (plan.compare, plan.repair_tables) == (("public.a", "public.b"), ("public.b",))
    assert decide(facts(A, B, commands=(command(CommandKind.VERIFY),))).plan.repair_tables == ()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (UnloggedChanges(rewritten=True), ""),
        (UnloggedChanges(rewritten=True, recomputed=True), "may have set the values of a column"),
        (UnloggedChanges(rewritten=True, rejoined=True), "a partition was detached and attached again"),
        (UnloggedChanges(doubted="the publication was altered"), "the publication was altered"),
    ],
)
def test_a_log_of_changes_is_blocked_by_a_rewrite_that_may_have_changed_rows(
    changes: UnloggedChanges, found: str
) -> None:
    """It cannot be compared, and a run that tried would try for ever."""
    log = replace(A.task.rule, history=History.LOG)
    decision = decide(facts(replace(A, task=replace(A.task, rule=log), unlogged=changes), B))
    assert decision.plan.compare == ()
    (of_log,) = (one for one in decision.table_decisions if one.table == "public.a")
    assert of_log.action is (TableAction.BLOCKED if found else TableAction.STREAM)
    assert not found or (of_log.problem and found in of_log.problem.found)


@pytest.mark.parametrize("state", [None, TableState.RESYNCING])
def test_comparisons_wait_for_copies_but_not_for_those_that_failed_before(state: TableState | None) -> None:
    """Such a copy may fail in each run."""
    due = replace(A, due=DueComparison())
    copied, other = (table(name, control(name, state=state) if state else None) for name in ("public.c", "public.d"))
    waiting = decide(facts(due, copied))
    assert waiting.plan.compare == () and any("wait for the copies" in note for note in waiting.notes)
    failing = replace(copied, failing=True)
    plan = decide(facts(due, failing)).plan
    assert (plan.compare, *plan.copy, *plan.reconcile) == (("public.a",), "public.c")
    branches = {"verify", "snapshot" if state is None else "reconcile.pause_stream"}
    assert branches <= {*decide(facts(due, failing)).follow}
    assert decide(facts(due, failing, other)).plan.compare == ()
