"""A first copy that cannot succeed is not tried again until somebody has changed something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import CommandLine, as_listed
from tests.provider.run_harness import RunHarness, schema

A, B = "public.a", "public.b"
BAD = Problem("CPY009", "public.a has a date that no target can store", where="row 7", do="correct the value")
AWAY = Problem("TGT010", "the lake does not answer", do="start it")
RESUME = f"airflow cdc resume shop --table {A}"


def stopped(
    harness: RunHarness, run_id: str, outcome: Outcome = Outcome.BLOCKED, problem: Problem = BAD
) -> CloseResult:
    """A run whose copy of ``public.a`` ends with the problem."""
    plan = harness.open(run_id).plan
    assert A in plan.copy
    harness.write_result(run_id, "snapshot", StepKind.SNAPSHOT, [TableResult(A, outcome, problem=problem)])
    return harness.close(run_id)


def shown(cdc: CommandLine) -> tuple[str, str, str]:
    (row,) = [table for table in cdc("status", "shop", "--json").body["tables"] if table["table"] == A]
    return row["state"], row["reason"], row["remedy"]


@pytest.fixture
def blocked(harness: RunHarness) -> RunHarness:
    stopped(as_listed(harness), "r1")
    return harness


def test_no_later_run_copies_it_and_each_shows_why(blocked: RunHarness, cdc: CommandLine) -> None:
    for run_id in ("r2", "r3"):
        decision = blocked.open(run_id)
        assert A not in decision.plan.copy
        blocked.spark(decision)
        (problem,) = blocked.close(run_id).problems
        assert problem.what == f"{A} is blocked: {BAD.what}"
        assert shown(cdc) == ("blocked", BAD.what, f"correct the value; then {RESUME}")
        assert blocked.state.tables("shop")[A].error.startswith(f"{BAD.code} {BAD.what} | where: row 7"), run_id
    assert blocked.state.tables("shop")[B].state == "replicating", "the other table is copied"


def test_a_copy_that_fails_in_each_run_does_not_stop_the_comparisons_of_other_tables(harness: RunHarness) -> None:
    stopped(as_listed(harness), "r1", Outcome.FAILING, AWAY)
    plan = harness.open("r2").plan
    harness.copy(replace(plan, copy=(B,)), "snapshot", (B,), TableState.REPLICATING)
    failed = TableResult(A, Outcome.FAILING, problem=AWAY)
    harness.write_result("r2", "snapshot", StepKind.SNAPSHOT, [failed, TableResult(B, Outcome.DONE, 10, fence=1)])
    harness.close("r2")
    verify = harness.request(CommandKind.VERIFY)
    decision = harness.open("r3")
    assert (decision.plan.copy, decision.plan.compare) == ((A,), (B,))
    assert {"snapshot", "verify"} <= {*decision.follow} and verify.id in decision.plan.commands


def test_resume_lets_the_next_run_copy_it(blocked: RunHarness, cdc: CommandLine) -> None:
    assert cdc("resume", "shop", "--table", A).code == 0
    assert shown(cdc) == ("pending", "", "")
    assert blocked.run("r2").problems == ()
    assert shown(cdc)[0] == "replicating"


def test_resync_copies_it_in_the_run_that_carries_it_out(blocked: RunHarness, cdc: CommandLine) -> None:
    assert cdc("resync", "shop", "--table", A).code == 0
    stopped(blocked, "r2")
    assert A not in blocked.open("r3").plan.copy, "the command has been carried out"
    blocked.close("r3")
    assert cdc("resync", "shop", "--table", A).code == 0
    assert blocked.run("r4").problems == ()


def test_a_pause_of_it_stays_a_pause(blocked: RunHarness, cdc: CommandLine) -> None:
    assert cdc("pause", "shop", "--table", A).code == 0
    blocked.run("r2")
    assert shown(cdc)[0] == "paused"
    assert cdc("resume", "shop", "--table", A).code == 0
    assert blocked.run("r3").problems == ()


def test_with_another_rule_it_is_another_copy(blocked: RunHarness) -> None:
    (rule,) = blocked.definition.tables
    blocked.definition = replace(blocked.definition, tables=(replace(rule, on_delete=OnDelete.SOFT),))
    assert A in blocked.open("r2").plan.copy


def test_with_other_columns_it_is_another_copy(blocked: RunHarness) -> None:
    wider = schema(A)
    wider = replace(wider, columns=(*wider.columns, Column("more", LogicalType(Kind.TEXT))))
    blocked.source.write(tables=[to_plain(wider), to_plain(schema(B))])
    assert A in blocked.open("r2").plan.copy


def test_one_that_fails_is_tried_again_for_as_long_as_the_yaml_allows(harness: RunHarness, cdc: CommandLine) -> None:
    as_listed(harness).definition = replace(harness.definition, retry_for=harness.definition.freshness)
    for run_id in ("r1", "r2"):
        stopped(harness, run_id, Outcome.FAILING, AWAY)
        assert shown(cdc)[0] == "failing"
    harness.state.change_tables("shop", lambda rows: [replace(rows[A], failing_since="2026-01-01T00:00:00.000+00:00")])
    stopped(harness, "r3", Outcome.FAILING, AWAY)
    assert shown(cdc)[0] == "blocked" and "of `retry_for`" in shown(cdc)[1]
    assert A not in harness.open("r4").plan.copy


def test_one_that_no_run_could_begin_is_not_given_up(harness: RunHarness, cdc: CommandLine) -> None:
    """Another run has the lane of copies, and the stream of the table cannot be read: `resume` would have nothing to
    let go on."""
    as_listed(harness).definition = replace(harness.definition, retry_for=harness.definition.freshness)
    stopped(harness, "r1", Outcome.FAILING, AWAY)
    harness.state.change_tables("shop", lambda rows: [replace(rows[A], failing_since="2026-01-01T00:00:00.000+00:00")])
    harness.state.acquire("shop", Lane.COPY, "other", 900.0)
    assert harness.open("r2").plan.copy == ()
    harness.write_result("r2", "extract", StepKind.EXTRACT, [TableResult(A, Outcome.FAILING, problem=AWAY)])
    harness.close("r2")
    assert shown(cdc) == ("failing", AWAY.what, AWAY.do)
