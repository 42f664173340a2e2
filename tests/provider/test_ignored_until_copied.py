"""Columns that an operator has decided not to copy stay out until a copy has all columns."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.control.answers import answer_open_question
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState
from tests.provider.run_harness import RunHarness
from tests.provider.waiting_table import QUESTION, ask

A, IGNORED = "public.a", {"name": ""}


@pytest.fixture(autouse=True)
def ignoring(harness: RunHarness) -> None:
    """``public.a`` does not have its column ``name``."""
    harness.run("r1")
    harness.commit("public_a", harness.control(A).fenced(ignored=IGNORED))


def task(harness: RunHarness, run_id: str) -> TableTask:
    return next(one for one in harness.open(run_id).plan.tables if one.table == A)


def test_the_answer_resync_brings_back_ignored_columns_with_the_copy_and_not_before(harness: RunHarness) -> None:
    ask(harness)
    harness.source.change("public.b")
    harness.run("r0")
    answer_open_question(harness.replicator, QUESTION, Answer.RESYNC, "ada", "")
    copying = task(harness, "r2")
    assert copying.state is TableState.RESYNCING and copying.schema.names == ("id", "name")
    assert harness.control(A).ignored == IGNORED, "the copy is as it was"
    refused = State(TableState.BLOCKED, "2026-11-27T12:00:00+00:00", "it would delete too many rows")
    harness.commit("public_a", harness.control(A).fenced(refused))
    harness.request(CommandKind.RESUME, A)
    resumed = task(harness, "r3")
    assert (resumed.state, resumed.ignored, resumed.schema.names) == (TableState.REPLICATING, ("name",), ("id",))


@pytest.mark.parametrize("waits", [True, False])
def test_a_resync_brings_back_ignored_columns_only_for_the_copy_that_it_makes(harness: RunHarness, waits: bool) -> None:
    """Not while it waits for a resume, nor after the copy, while it waits for another one."""
    resync = harness.request(CommandKind.RESYNC)
    assert task(harness, "r2").schema.names == ("id", "name")
    if waits:
        harness.request(CommandKind.PAUSE, A)
    else:
        harness.commit("public_a", harness.control(A).fenced(resyncs=(resync.id,)))
    found = task(harness, "r3")
    assert (found.ignored, found.schema.names) == (("name",), ("id",))
