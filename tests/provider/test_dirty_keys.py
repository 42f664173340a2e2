"""Rows that wait to be fetched, as runs and operators see them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.steps import STAGED, Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.small_world import World
from tests.provider.typed import Type, replicated

TABLE = "public.a"
AWAY = Problem("SRC020", "the source did not return 2 rows", do="nothing")


@pytest.fixture
def dirty(world: World) -> World:
    """Two rows of ``public.a`` wait, with three changes behind them."""
    replicated(world)
    carry = CarryOver((), {"dirty": 2, "parked": 3})
    record = world.control(TABLE).fenced(carry=carry, attempt="merge")
    world.commit("public_a", record)
    row = world.state.tables("shop")[TABLE]
    world.state.change_tables("shop", lambda _: [replace(row, fence=record.fence, control=record)])
    return world


def stage_says(world: World, run_id: str, outcome: Outcome, problem: Problem | None = None) -> None:
    world.say(run_id, "stage", StepKind.STAGE, [TableResult(TABLE, outcome, problem=problem)])


def test_they_make_a_run_due_until_the_source_has_told_them(dirty: World) -> None:
    assert dirty.open("r2").follow == ("stage", "close_window")
    stage_says(dirty, "r2", Outcome.FAILING, AWAY)
    closed = dirty.close("r2")
    row = dirty.state.tables("shop")[TABLE]
    assert row.state is TableState.FAILING and "did not return" in row.reason
    assert [problem.code for problem in closed.problems] == ["RUN002"]
    assert "public.a: 2 records wait to be fetched from the source; each run tries again" in dirty.told

    assert dirty.open("r3").follow == ("stage", "close_window")
    record = dirty.control(TABLE).fenced(carry=CarryOver((), {"fetched": 2}), attempt="merge")
    dirty.commit("public_a", record)
    stage_says(dirty, "r3", Outcome.DONE)
    merged = TableResult(TABLE, Outcome.DONE, 2, {"updated": 2}, record.fence, record.window)
    dirty.say("r3", "merge", StepKind.MERGE, [merged])
    assert dirty.close("r3").problems == ()
    assert dirty.state.tables("shop")[TABLE].state is TableState.REPLICATING
    assert dirty.open("r4").follow == ("close_window",)


def test_the_target_is_asked_whether_they_still_wait(dirty: World) -> None:
    """A run may have merged the answers and died before the index knew."""
    record = dirty.control(TABLE).fenced(carry=CarryOver((), {"fetched": 2}), attempt="merge")
    dirty.commit("public_a", record)
    assert dirty.open("r2").follow == ("close_window",)


def test_what_was_staged_beside_them_is_merged_and_the_table_is_failing_all_the_same(dirty: World) -> None:
    plan = dirty.open("r2").plan
    staged = TableResult(TABLE, Outcome.FAILING, problem=AWAY, detail={STAGED: 1})
    dirty.say(plan.run_id, "stage", StepKind.STAGE, [staged])
    record = dirty.control(TABLE).fenced(attempt="merge")
    dirty.commit("public_a", record)
    merged = TableResult(TABLE, Outcome.DONE, 1, {"updated": 1}, record.fence, record.window)
    dirty.say(plan.run_id, "merge", StepKind.MERGE, [merged])
    dirty.close("r2")
    row = dirty.state.tables("shop")[TABLE]
    assert (row.state, row.changes) == (TableState.FAILING, {"updated": 1})


def test_status_tells_how_many_there_are(cdc: Type, dirty: World) -> None:
    cdc("pause", "shop", "--table", TABLE)
    assert cdc("status", "shop", "--json").body["tables"][0]["dirty"] == 2
    assert "2 to fetch (+3 parked)" in cdc("status", "shop").out
