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
