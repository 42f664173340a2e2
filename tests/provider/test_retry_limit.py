"""A table may fail for a limited time, if the YAML says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness

AWAY = Problem("TGT010", "the lake does not answer", do="start it")
HOURS_AGO = "2026-01-01T00:00:00.000+00:00"


def failing_run(harness: RunHarness, run_id: str) -> CloseResult:
    """The merge of ``public.a`` fails in a way that a retry can help."""
    plan = harness.open(run_id).plan
    if plan.extract:
        harness.extract(plan)
    harness.write_result(run_id, "merge", StepKind.MERGE, [TableResult("public.a", Outcome.FAILING, problem=AWAY)])
    return harness.close(run_id)


def state(harness: RunHarness, table: str = "public.a") -> TableState:
    return harness.state.tables("shop")[table].state


@pytest.fixture
def failing(harness: RunHarness) -> RunHarness:
    """``public.a`` has failed for months."""
    replicated(harness)
    harness.source.change("public.a", "public.b")
    failing_run(harness, "r2")
    assert state(harness) is TableState.FAILING
    harness.state.change_tables("shop", lambda rows: [replace(rows["public.a"], failing_since=HOURS_AGO)])
    return harness


def test_a_table_that_fails_for_longer_than_the_yaml_allows_stops_until_it_is_resumed(failing: RunHarness) -> None:
    failing.definition = replace(failing.definition, retry_for=timedelta(days=1))
    failing_run(failing, "r3")
    row = failing.state.tables("shop")["public.a"]
    assert row.state is TableState.BLOCKED and failing.control("public.a").state.name is TableState.BLOCKED
    assert "longer than the 1d of `retry_for`" in row.reason
    assert row.remedy == "start it; then airflow cdc resume shop --table public.a"
    assert "merge" not in failing.open("r4").follow, "a stopped table is not tried again"
    failing.close("r4")
    assert (state(failing), state(failing, "public.b")) == (TableState.BLOCKED, TableState.REPLICATING)

    failing.request(CommandKind.RESUME, "public.a")
    assert failing.run("r5").problems == ()
    assert state(failing) is TableState.REPLICATING and failing.control("public.a").window == 2


def test_without_a_limit_it_is_tried_again_for_ever(failing: RunHarness) -> None:
    failing_run(failing, "r3")
    assert state(failing) is TableState.FAILING
    assert failing.run("r4").problems == ()
    assert state(failing) is TableState.REPLICATING


def test_a_table_within_the_limit_is_tried_again(failing: RunHarness) -> None:
    failing.definition = replace(failing.definition, retry_for=timedelta(days=100_000))
    failing_run(failing, "r3")
    assert state(failing) is TableState.FAILING


def test_a_table_that_recovers_has_the_whole_time_again(failing: RunHarness) -> None:
    failing.definition = replace(failing.definition, retry_for=timedelta(days=1))
    assert failing.run("r3").problems == ()
    failing.source.change("public.a")
    failing_run(failing, "r4")
    assert state(failing) is TableState.FAILING
