"""An approval counts for the resync it was given to."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, find_delete_approval
from airflow_cdc_provider.core.table.states import State, TableState

STATE = State(TableState.RESYNCING, "2026-11-21T12:00:00.000+00:00", command="c1")
OPEN = ("c1",)
APPROVAL = OperatorDecision(
    "1", DecisionKind.APPROVE_DELETES, "shop", "public.a", "anna", "2026-11-21T12:02:00.000+00:00", command="c1"
)


def test_an_approval_counts_for_the_resync_of_its_command() -> None:
    assert find_delete_approval([APPROVAL], "public.a", STATE, OPEN) is APPROVAL


def test_an_approval_of_another_resync_or_table_does_not_count_whatever_the_clocks_say() -> None:
    others = [replace(APPROVAL, command="c0"), replace(APPROVAL, command=""), replace(APPROVAL, table="public.b")]
    assert find_delete_approval(others, "public.a", STATE, OPEN) is None
    assert find_delete_approval(others, "public.a", replace(STATE, command=""), OPEN) is None


def test_an_approval_ends_with_its_resync() -> None:
    assert find_delete_approval([APPROVAL], "public.a", replace(STATE, name=TableState.REPLICATING), OPEN) is None


def test_an_approval_ends_with_its_command() -> None:
    """A command ends for a table that leaves the YAML; the unfinished resync goes on when the table returns."""
    assert find_delete_approval([APPROVAL], "public.a", STATE, ()) is None
