"""The history of a table's states."""

from __future__ import annotations

from airflow_cdc_provider.core.table.past_states import KEPT, PastState, with_state
from airflow_cdc_provider.core.table.states import TableState

FIRST = PastState(TableState.PENDING, "t1")


def test_a_state_is_kept_once_with_its_last_reason() -> None:
    history = with_state((), FIRST)
    history = with_state(history, PastState(TableState.FAILING, "t2", "no network"))
    history = with_state(history, PastState(TableState.FAILING, "t2", "no login"))
    assert history == (FIRST, PastState(TableState.FAILING, "t2", "no login"))


def test_the_same_state_at_another_time_is_another_entry() -> None:
    assert len(with_state(with_state((), FIRST), PastState(TableState.PENDING, "t2"))) == 2


def test_the_oldest_states_are_forgotten() -> None:
    history: tuple[PastState, ...] = ()
    for number in range(KEPT + 5):
        history = with_state(history, PastState(TableState.PAUSED, f"t{number:02d}"))
    assert [history[0].since, history[-1].since, len(history)] == ["t05", f"t{KEPT + 4}", KEPT]
