"""An approval counts for the resync it was given to."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, find_delete_approval
from airflow_cdc_provider.core.table.states import State, TableState

SINCE = "2026-11-21T12:00:00.000+00:00"
STATE = State(TableState.RESYNCING, SINCE, command="c1")
APPROVAL = OperatorDecision(
    "1", DecisionKind.APPROVE_DELETES, "shop", "public.a", "anna", "2026-11-21T12:00:01.000+00:00"
)


def test_an_approval_since_the_start_of_the_resync_counts() -> None:
    assert find_delete_approval([APPROVAL], "public.a", STATE) is APPROVAL


def test_an_approval_given_with_the_command_counts_although_it_is_older() -> None:
    earlier = replace(APPROVAL, decided_at="2026-11-21T11:59:59.000+00:00", command="c1")
    assert find_delete_approval([earlier], "public.a", STATE) is earlier


def test_an_approval_of_an_earlier_resync_or_another_table_does_not_count() -> None:
    earlier = replace(APPROVAL, decided_at="2026-11-21T11:59:59.000+00:00", command="c0")
    assert find_delete_approval([earlier, replace(APPROVAL, table="public.b")], "public.a", STATE) is None
