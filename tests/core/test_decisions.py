"""A yes counts for the resync it was given to."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, find_delete_approval
from airflow_cdc_provider.core.table.states import State, TableState

SINCE = "2026-11-21T12:00:00.000+00:00"
STATE = State(TableState.RESYNCING, SINCE, command="c1")
YES = OperatorDecision("1", DecisionKind.APPROVE_DELETES, "shop", "public.a", "anna", "2026-11-21T12:00:01.000+00:00")


def test_a_yes_since_the_table_is_resyncing_counts() -> None:
    assert find_delete_approval([YES], "public.a", STATE) is YES


def test_a_yes_that_came_with_the_command_counts_though_it_is_older() -> None:
    earlier = replace(YES, decided_at="2026-11-21T11:59:59.000+00:00", command="c1")
    assert find_delete_approval([earlier], "public.a", STATE) is earlier


def test_a_yes_to_an_earlier_resync_or_another_table_does_not_count() -> None:
    earlier = replace(YES, decided_at="2026-11-21T11:59:59.000+00:00", command="c0")
    assert find_delete_approval([earlier, replace(YES, table="public.b")], "public.a", STATE) is None
