"""Dirty keys in runs and in the command line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.steps import STAGED, Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness, attempt_of

TABLE = "public.a"
AWAY = Problem("SRC020", "the source did not return 2 rows", do="nothing")


@pytest.fixture
def dirty(harness: RunHarness) -> RunHarness:
    """Two rows of ``public.a`` wait to be fetched, with three parked changes."""
    replicated(harness)
    carry = CarryOver((), {"dirty": 2, "parked": 3})
    record = harness.control(TABLE).fenced(carry=carry, attempt="merge")
    harness.commit("public_a", record)
    row = harness.state.tables("shop")[TABLE]
    harness.state.change_tables("shop", lambda _: [replace(row, fence=record.fence, control=record)])
    return harness


def write_stage_result(harness: RunHarness, run_id: str, outcome: Outcome, problem: Problem | None = None) -> None:
    harness.write_result(run_id, "stage", StepKind.STAGE, [TableResult(TABLE, outcome, problem=problem)])


def test_dirty_keys_make_a_run_due_until_they_are_fetched(dirty: RunHarness) -> None:
    assert dirty.open("r2").follow == ("stage", "close_window")
    write_stage_result(dirty, "r2", Outcome.FAILING, AWAY)
    closed = dirty.close("r2")
    row = dirty.state.tables("shop")[TABLE]
    assert row.state is TableState.FAILING and "did not return" in row.reason
    assert [problem.code for problem in closed.problems] == ["RUN002"]
    assert "public.a: 2 records wait to be fetched from the source; each run tries again" in dirty.log_lines

    assert dirty.open("r3").follow == ("stage", "close_window")
    record = dirty.control(TABLE).fenced(carry=CarryOver((), {"fetched": 2}), attempt="merge")
    dirty.commit("public_a", record)
    write_stage_result(dirty, "r3", Outcome.DONE)
    merged = TableResult(TABLE, Outcome.DONE, 2, {"updated": 2}, record.fence, record.window)
    dirty.write_result("r3", "merge", StepKind.MERGE, [merged])
    assert dirty.close("r3").problems == ()
    assert dirty.state.tables("shop")[TABLE].state is TableState.REPLICATING
    assert dirty.open("r4").follow == ("close_window",)


def test_dirty_keys_are_read_from_the_target(dirty: RunHarness) -> None:
    """A run may have merged the fetched rows and died before it wrote the index."""
    record = dirty.control(TABLE).fenced(carry=CarryOver((), {"fetched": 2}), attempt="merge")
    dirty.commit("public_a", record)
    assert dirty.open("r2").follow == ("close_window",)


def test_other_changes_are_merged_although_the_table_is_failing(dirty: RunHarness) -> None:
    plan = dirty.open("r2").plan
    staged = TableResult(TABLE, Outcome.FAILING, problem=AWAY, detail={STAGED: 1})
    dirty.write_result(plan.run_id, "stage", StepKind.STAGE, [staged])
    record = dirty.control(TABLE).fenced(attempt=attempt_of(plan, "merge"))
    dirty.commit("public_a", record)
    merged = TableResult(TABLE, Outcome.DONE, 1, {"updated": 1}, record.fence, record.window)
    dirty.write_result(plan.run_id, "merge", StepKind.MERGE, [merged])
    dirty.close("r2")
    row = dirty.state.tables("shop")[TABLE]
    assert (row.state, row.changes) == (TableState.FAILING, {"updated": 1})


def test_status_shows_the_number_of_dirty_keys(cdc: CommandLine, dirty: RunHarness) -> None:
    cdc("pause", "shop", "--table", TABLE)
    assert cdc("status", "shop", "--json").body["tables"][0]["dirty"] == 2
    assert "2 to fetch (+3 parked)" in cdc("status", "shop").out
