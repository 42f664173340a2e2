"""Tables by name that the source no longer lists: the policy decides once, and runs after that succeed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import replicated
from tests.provider.run_harness import RunHarness, schema


def after_the_drop_of_b(harness: RunHarness, policy: OnDroppedTable | None) -> None:
    rules = (TableRule("public.a"), TableRule("public.b", dropped_tables=policy))
    harness.definition = replace(harness.definition, tables=rules)
    replicated(harness)
    harness.source.write(tables=[to_plain(schema("public.a"))])
    harness.source.change("public.a")


def test_a_kept_copy_fails_no_later_run(harness: RunHarness) -> None:
    after_the_drop_of_b(harness, OnDroppedTable.KEEP)
    for run in ("r2", "r3"):
        assert harness.run(run).problems == ()
        assert harness.state.tables("shop")["public.b"].state is TableState.DROPPED
        harness.source.change("public.a")


@pytest.mark.parametrize("policy", [OnDroppedTable.KEEP, OnDroppedTable.STOP])
@pytest.mark.parametrize("read", [False, True])
def test_a_table_that_is_listed_again_continues_or_asks_for_a_resync(
    harness: RunHarness, policy: OnDroppedTable, read: bool
) -> None:
    """As its remedy says: the windows that were read meanwhile lack its changes."""
    rules = (TableRule("public.a"), TableRule("public.b", dropped_tables=policy))
    harness.definition = replace(harness.definition, tables=rules)
    replicated(harness)
    listed = harness.source.read()["tables"]
    harness.source.write(tables=[to_plain(schema("public.a"))])
    harness.source.change(*["public.a"] if read else [])
    harness.run("r2")
    row = harness.state.tables("shop")["public.b"]
    assert "the next run continues the copy, or asks for a resync if a run has read changes without" in row.remedy
    harness.source.write(tables=listed)
    problems = harness.run("r3").problems
    assert [problem.do for problem in problems] == ["airflow cdc resync shop --table public.b"] * read


def test_another_policy_reports_the_table_again(harness: RunHarness) -> None:
    after_the_drop_of_b(harness, OnDroppedTable.KEEP)
    harness.run("r2")
    harness.definition = replace(harness.definition, tables=(TableRule("public.a"), TableRule("public.b")))
    harness.source.change("public.a")
    (problem,) = harness.run("r3").problems
    assert problem.code == "DEF041"


@pytest.mark.parametrize("policy", [None, OnDroppedTable.STOP, OnDroppedTable.DROP])
def test_each_run_reports_a_table_that_is_blocked(harness: RunHarness, policy: OnDroppedTable | None) -> None:
    """This source cannot confirm that the table was dropped."""
    after_the_drop_of_b(harness, policy)
    for run in ("r2", "r3"):
        assert "TBL004" in {problem.code for problem in harness.run(run).problems}
        harness.source.change("public.a")
