"""What an operator has decided, as it stands under ``decisions/`` before anything acts on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.states import State

FOLDER = "decisions"


class DecisionKind(StrEnum):
    """``approve_deletes``: a resync may delete more rows than ``resync.max_delete`` allows."""

    APPROVE_DELETES = "approve_deletes"


@dataclass(frozen=True)
class Decision:
    """``id`` sorts by time. ``command`` is the request it came with. ``decided_at`` is UTC in ISO form."""

    id: str
    kind: DecisionKind
    replicator: str
    table: str
    decided_by: str
    decided_at: str
    command: str = ""
    reason: str = ""


def decision_path(decision_id: str) -> str:
    return f"{FOLDER}/{decision_id}.json"


def approves_deletes(decisions: Iterable[Decision], table: str, state: State) -> Decision | None:
    """The decision that lets the resync of ``table`` delete many rows.

    It counts for one resync: it came with the command that started it, or was made since the table went into its
    state. A yes to an earlier resync says nothing about this one.
    """
    for decision in decisions:
        if decision.kind is not DecisionKind.APPROVE_DELETES or decision.table != table:
            continue
        if (decision.command and decision.command == state.command) or decision.decided_at >= state.since:
            return decision
    return None
