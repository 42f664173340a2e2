"""The states that a table has had, with their reasons. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.table.states import TableState

KEPT = 20


@dataclass(frozen=True)
class PastState:
    """``since``: UTC in ISO 8601 format. ``reason``: empty if there was none."""

    state: TableState
    since: str
    reason: str = ""


def with_state(history: tuple[PastState, ...], current: PastState) -> tuple[PastState, ...]:
    """The last states, the current one last. A new reason in the same state since the same time replaces the entry."""
    if history and (history[-1].state, history[-1].since) == (current.state, current.since):
        return (*history[:-1], current)
    return (*history, current)[-KEPT:]
