"""Decisions of an operator: files under ``decisions/``, written before they take effect.

They are numbered in the order in which they were written, whatever the clocks of their hosts show: the name of a file
is its number, and the first writer of a number has it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState

FOLDER = "decisions"
NUMBERED = re.compile(r"n(\d{9})\.json")


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
    """``id``: sorts by the order in which they were written. ``command``: the id of the command with the decision.
    ``decided_at``: UTC in ISO 8601 format. ``record``: the id of the bad record; ``values``: canonical values that
    replace its own. ``question``: its id; ``window``: after which its change happened; ``columns``: dropped column →
    added column, for the answer ``rename``; column → its id, for ``ignore``. ``identity``: of the copy to drop;
    ``state``: its state before that."""

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
    state: State | None = None
    window: int | None = None


def new_decision(
    kind: DecisionKind, replicator: str, table: str, decided_by: str, about: str, **details: Any
) -> OperatorDecision:
    """A decision made now. ``about``: the id of the command or record that it is about. Its id has a number when it is
    written."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return OperatorDecision(about, kind, replicator, table, decided_by, at, **details)


def numbered(decision: OperatorDecision, number: int) -> OperatorDecision:
    return replace(decision, id=f"{_prefix(number)}-{decision.id}")


def number_path(number: int) -> str:
    """Of the decision with this number."""
    return decision_path(_prefix(number))


def last_number(names: Iterable[str]) -> int:
    """``names``: of the files of decisions; 0 if none of them has a number. A file of the former form is named by the
    time of its decision, and sorts before all with a number."""
    numbers = (NUMBERED.fullmatch(name) for name in names)
    return max((int(found[1]) for found in numbers if found), default=0)


def _prefix(number: int) -> str:
    return f"n{number:09d}"


def decision_path(name: str) -> str:
    return f"{FOLDER}/{name}.json"


def find_delete_approval(
    decisions: Iterable[OperatorDecision], table: str, state: State, open_resyncs: Collection[str]
) -> OperatorDecision | None:
    """The decision that allows the current resync of ``table`` to delete many rows: it was made for the command that
    started the resync, which is still open for the table. ``state``: of the table now."""
    if state.name is not TableState.RESYNCING or state.command not in open_resyncs:
        return None
    approvals = (one for one in decisions if one.kind is DecisionKind.APPROVE_DELETES and one.table == table)
    return next((one for one in approvals if one.command == state.command), None)


def state_before_drop(decisions: Iterable[OperatorDecision], table: str, identity: str) -> State | None:
    """Of the copy of ``table`` with this identity, by the last decision to drop it; None if there was none."""
    drops = [one for one in decisions if one.kind is DecisionKind.DROP_COPY]
    own = [one for one in drops if (one.table, one.identity) == (table, identity)]
    return max(own, key=lambda one: one.id).state if own else None


def decisions_by_record(decisions: Iterable[OperatorDecision], copy: str) -> dict[str, OperatorDecision]:
    """The newest decision for each bad record of a copy, by record id."""
    matching = (decision for decision in decisions if decision.record and decision.table == copy)
    return {decision.record: decision for decision in sorted(matching, key=lambda decision: decision.id)}


def answer_to(decisions: Iterable[OperatorDecision], question: str) -> OperatorDecision | None:
    """The answer that counts: the newest, except that one with an effect is final."""
    answers = sorted((decision for decision in decisions if decision.question == question), key=lambda one: one.id)
    final = [decision for decision in answers if decision.answer is not Answer.LEAVE]
    return final[0] if final else answers[-1] if answers else None


def newly_ignored(decisions: Iterable[OperatorDecision], table: str, since: int) -> frozenset[str]:
    """The columns of the answers ``ignore`` about changes after window ``since``: the first records after it may be
    older than the columns."""
    answers = (one for one in decisions if one.table == table and one.answer is Answer.IGNORE)
    return frozenset(name for one in answers if one.window is not None and one.window >= since for name in one.columns)


def decided_renames(decisions: Iterable[OperatorDecision], table: str, since: int) -> dict[str, str]:
    """Former → present name, by the answers ``rename`` about changes after window ``since``. An answer counts for the
    change that its question was about: later, the same names may belong to other columns."""
    answers = (one for one in decisions if one.table == table and one.answer is Answer.RENAME)
    renames = [(one.window, one.id, one.columns) for one in answers if one.window is not None and one.window >= since]
    names: dict[str, str] = {}
    for _, _, columns in sorted(renames, key=lambda one: one[:2]):
        names = {former: columns.get(present, present) for former, present in names.items()} | columns
    return names
