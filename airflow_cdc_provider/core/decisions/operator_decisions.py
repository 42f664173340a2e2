"""Decisions of an operator: files under ``decisions/``, written before they take effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State

FOLDER = "decisions"


class DecisionKind(StrEnum):
    """``approve_deletes``: a resync may delete more rows than ``resync.max_delete`` allows. ``replay``: apply a bad
    record again. ``discard``: drop it. ``schema``, ``repair``: the answer to a question about a schema
    change, or about rows that differ. ``drop_copy``: drop
    the copy of a table that the source dropped, as the definition says."""

    APPROVE_DELETES = "approve_deletes"
    SCHEMA = "schema"
    REPAIR = "repair"
    REPLAY = "replay"
    DISCARD = "discard"
    DROP_COPY = "drop_copy"


@dataclass(frozen=True)
class OperatorDecision:
    """``id``: sorts by time. ``command``: the id of the command with the decision. ``decided_at``: UTC in ISO 8601
    format. ``record``: the id of the bad record; ``values``: canonical values that replace its own. ``question``: its
    id; ``columns``: dropped column → added column, for the answer ``rename``. ``identity``: of the copy to drop."""

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
    question: str = ""
    answer: Answer | None = None
    columns: dict[str, str] = field(default_factory=dict)
    identity: str = ""


def new_decision(
    kind: DecisionKind, replicator: str, table: str, decided_by: str, about: str, **details: Any
) -> OperatorDecision:
    """A decision made now. ``about``: the id of the command or record that it is about."""
    now = datetime.now(UTC)
    at = now.isoformat(timespec="milliseconds")
    return OperatorDecision(f"{now:%Y%m%dT%H%M%S%f}-{about}", kind, replicator, table, decided_by, at, **details)


def decision_path(decision_id: str) -> str:
    return f"{FOLDER}/{decision_id}.json"


def find_delete_approval(decisions: Iterable[OperatorDecision], table: str, state: State) -> OperatorDecision | None:
    """The decision that allows the current resync of ``table`` to delete many rows.

    A decision is valid for one resync: it belongs to the command that started the resync, or was made after the table
    entered its state.
    """
    for decision in decisions:
        if decision.kind is not DecisionKind.APPROVE_DELETES or decision.table != table:
            continue
        if (decision.command and decision.command == state.command) or decision.decided_at >= state.since:
            return decision
    return None


def dropped_identity(decisions: Iterable[OperatorDecision], table: str) -> str | None:
    """The identity of the copy of ``table`` that was dropped last; None if none was."""
    drops = [one for one in decisions if one.kind is DecisionKind.DROP_COPY and one.table == table]
    return max(drops, key=lambda one: one.id).identity if drops else None


def decisions_by_record(decisions: Iterable[OperatorDecision], table: str) -> dict[str, OperatorDecision]:
    """The newest decision for each bad record of ``table``, by record id."""
    matching = (decision for decision in decisions if decision.record and decision.table == table)
    return {decision.record: decision for decision in sorted(matching, key=lambda decision: decision.id)}


def answer_to(decisions: Iterable[OperatorDecision], question: str) -> OperatorDecision | None:
    """The answer that counts: the newest, except that one with an effect is final."""
    answers = sorted((decision for decision in decisions if decision.question == question), key=lambda one: one.id)
    final = [decision for decision in answers if decision.answer is not Answer.LEAVE]
    return final[0] if final else answers[-1] if answers else None
