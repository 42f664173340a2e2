from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.states import HOLDS_ACKNOWLEDGEMENT, MOVES, TAKES_CHANGES, TableState, require_move

states = st.sampled_from(TableState)


def test_every_state_has_transitions() -> None:
    assert set(MOVES) == set(TableState)


@given(states)
def test_staying_is_always_allowed(state: TableState) -> None:
    require_move("public.a", state, state)


@given(states, states)
def test_a_transition_is_allowed_or_refused_with_the_allowed_ones(now: TableState, to: TableState) -> None:
    if to is now or to in MOVES[now]:
        require_move("public.a", now, to)
        return
    with pytest.raises(CommandRefused) as refused:
        require_move("public.a", now, to)
    (problem,) = refused.value.problems
    assert (problem.code, problem.found) == ("CMD001", now)
    assert all(allowed in problem.allowed for allowed in MOVES[now])


def test_a_first_copy_can_be_paused_before_and_while_it_runs() -> None:
    assert TableState.PENDING in MOVES[TableState.PAUSED]
    assert {now for now, to in MOVES.items() if TableState.PAUSED in to} == {
        TableState.PENDING,
        TableState.SNAPSHOTTING,
        TableState.REPLICATING,
        TableState.RESYNCING,
        TableState.FAILING,
        TableState.BLOCKED,
    }


def test_every_state_but_the_first_leads_back_to_replicating() -> None:
    reach = {TableState.REPLICATING}
    while more := {now for now, to in MOVES.items() if to & reach} - reach:
        reach |= more
    assert reach == set(TableState)


@pytest.mark.parametrize("state", [TableState.PAUSED, TableState.BLOCKED, TableState.RESYNCING, TableState.REWINDING])
def test_a_table_outside_the_stream_takes_no_changes_and_does_not_hold_the_acknowledgement(state: TableState) -> None:
    assert state not in TAKES_CHANGES
    assert state not in HOLDS_ACKNOWLEDGEMENT


def test_a_failing_table_holds_the_acknowledgement() -> None:
    assert TableState.FAILING in HOLDS_ACKNOWLEDGEMENT
