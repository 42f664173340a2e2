"""Tables that are to be copied while another run reads a window without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.conditions import Comparison, Condition
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.run_harness import RunHarness

A, B = "public.a", "public.b"


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    return RunHarness(tmp_path)


def select(harness: RunHarness, *rules: TableRule) -> None:
    harness.definition = replace(harness.definition, tables=rules)


def reads_without_b(harness: RunHarness) -> RunDecision:
    """An open run that reads a window; its plan lacks the table that the YAML selects since."""
    select(harness, TableRule(A))
    assert harness.run("r1").problems == ()
    harness.source.change(A)
    reading = harness.open("r2")
    assert reading.plan.extract
    select(harness, TableRule(A), TableRule(B))
    return reading


def test_an_added_table_is_copied_after_the_window_that_another_run_reads_without_it(harness: RunHarness) -> None:
    reading = reads_without_b(harness)
    assert not dry_run(harness.replicator).has_work
    beside = harness.open("r3")
    assert (beside.plan.copy, beside.follow) == ((), ("close_window",))
    assert f"{B}: its copy begins after the window that run r2 reads without it" in beside.notes
    row = harness.state.tables("shop")[B]
    assert (row.state, row.reason) == (
        TableState.PENDING,
        "its copy begins after the window that run r2 reads without it",
    )
    assert harness.close("r3").problems == ()
    harness.source.change(B)
    harness.extract(reading.plan)
    assert dry_run(harness.replicator).decision.plan.copy == (B,), "the window is sealed"
    harness.merge(reading.plan)
    assert harness.close("r2").problems == ()
    for run in ("r4", "r5"):
        assert harness.run(run).problems == ()
    assert harness.control(B).state.name is TableState.REPLICATING


def test_no_table_is_copied_beside_a_run_that_has_not_decided_yet(harness: RunHarness) -> None:
    reads_without_b(harness)
    harness.replicator.run("r2").delete_decision()
    beside = harness.open("r3")
    assert beside.plan.copy == ()
    assert f"{B}: its copy begins after the window that run r2 reads without it" in beside.notes


def test_no_table_is_copied_beside_a_comparison_that_seals_windows_without_it(harness: RunHarness) -> None:
    select(harness, TableRule(A))
    harness.run("r1")
    harness.request(CommandKind.VERIFY, A)
    comparing = harness.open("r2")
    assert comparing.plan.compare == (A,) and not comparing.plan.extract
    select(harness, TableRule(A), TableRule(B))
    assert harness.open("r3").plan.copy == ()
    harness.close("r3")
    harness.spark(comparing)
    assert harness.open("r4").plan.copy == (B,), "the comparison has ended"


def test_no_table_is_copied_beside_an_extract_that_may_seal_another_window(harness: RunHarness) -> None:
    reading = reads_without_b(harness)
    harness.extract(reading.plan)
    harness.write_result("r2", "extract", StepKind.EXTRACT, [], problem=Problem("SRC001", "the source went away"))
    assert harness.open("r3").plan.copy == (), "it is tried again"
    harness.write_result("r2", "extract", StepKind.EXTRACT, [])
    assert harness.open("r4").plan.copy == (B,)


def test_a_table_is_copied_beside_a_run_that_reads_no_window(harness: RunHarness) -> None:
    select(harness, TableRule(A))
    harness.run("r1")
    harness.source.change(A)
    assert harness.close("r2", ["extract"]) and harness.open("r2")
    harness.extract(harness.open("r2").plan)
    harness.close("r2", ["stage"])
    applying = harness.open("r3")
    assert applying.follow == ("stage", "close_window")
    select(harness, TableRule(A), TableRule(B))
    copying = harness.open("r4")
    assert copying.plan.copy == (B,)
    harness.spark(applying)
    harness.close("r3")
    harness.spark(copying)
    assert harness.close("r4").problems == ()
    assert harness.run("r5").problems == ()


def test_a_table_is_not_copied_again_beside_a_window_that_is_read_by_other_settings(harness: RunHarness) -> None:
    select(harness, TableRule(A), TableRule(B))
    harness.run("r1")
    harness.source.change(A)
    reading = harness.open("r2")
    select(harness, TableRule(A), TableRule(B, where=(Condition("id", Comparison.LESS, 5),)))
    command = harness.request(CommandKind.RESYNC, B)
    beside = harness.open("r3")
    assert (beside.plan.reconcile, beside.plan.commands) == ((), ())
    harness.close("r3")
    harness.spark(reading)
    assert harness.close("r2").problems == ()
    assert harness.run("r4").problems == ()
    done = harness.state.command(command.id)
    assert done and done.status is CommandStatus.DONE


def test_a_table_that_the_other_run_reads_is_copied_again_beside_it(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.change(A)
    harness.open("r2")
    harness.request(CommandKind.RESYNC, B)
    assert harness.open("r3").plan.reconcile == (B,)
