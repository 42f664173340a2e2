"""What an operator has decided, as it stands under ``decisions/`` before anything acts on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.table.states import State

FOLDER = "decisions"


class DecisionKind(StrEnum):
    """``approve_deletes``: a resync may delete more rows than ``resync.max_delete`` allows. ``replay``: a bad record is
    tried again. ``discard``: it is given up."""

    APPROVE_DELETES = "approve_deletes"
    REPLAY = "replay"
    DISCARD = "discard"


@dataclass(frozen=True)
class OperatorDecision:
    """``id`` sorts by time. ``command`` is the request it came with. ``decided_at`` is UTC in ISO form. ``record``: the
    id of the bad record that is decided about; ``values``: canonical values that take the place of its own."""

    id: str
    kind: DecisionKind
    replicator: str
    table: str
    decided_by: str
    decided_at: str
    command: str = ""
    reason: str = ""
    record: str = ""
    values: dict[str, Any] = field(default_factory=dict)


def decision_path(decision_id: str) -> str:
    return f"{FOLDER}/{decision_id}.json"


def find_delete_approval(decisions: Iterable[OperatorDecision], table: str, state: State) -> OperatorDecision | None:
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


def decisions_by_record(decisions: Iterable[OperatorDecision], table: str) -> dict[str, OperatorDecision]:
    """The newest decision about each bad record of ``table``, by the record's id."""
    about = (decision for decision in decisions if decision.record and decision.table == table)
    return {decision.record: decision for decision in sorted(about, key=lambda decision: decision.id)}
