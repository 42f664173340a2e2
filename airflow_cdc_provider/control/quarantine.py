"""Bad records for an operator, and the decisions about them, which are written before any step acts on them.

Decisions are files under ``decisions/``. The stage step applies a decision when it reads the record from the carry-over
or, for a table that stopped before the record, from the change log. So a decision may be repeated, and a run may crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.operator_decisions import (
    DecisionKind,
    OperatorDecision,
    decisions_by_record,
    new_decision,
)
from airflow_cdc_provider.core.log.quarantine import BadRecord
from airflow_cdc_provider.core.table.control_record import ControlRecord


@dataclass(frozen=True)
class QuarantineCase:
    """``copy``: the copy that the record waits in. ``parked``: how many records of the same key wait for it.
    ``blocks_table``: the table has stopped before the record's window. ``columns``: those of the table; ``hidden``:
    those that are hashed, masked or truncated. ``decision``: the newest one about the record."""

    copy: str
    record: BadRecord
    since: str
    parked: int = 0
    blocks_table: bool = False
    columns: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    decision: OperatorDecision | None = None


def open_cases(replicator: Replicator, table: str, control: ControlRecord) -> list[QuarantineCase]:
    """The records that need a decision, in the order of the change log: those in the table's quarantine and those that
    stop the table."""
    log = replicator.log
    decisions = decisions_by_record(log.decisions(), table)
    waiting = {entry.id: entry for entry in log.quarantined_records(control.carry)}
    schema = control.schema.columns if control.schema else ()
    columns = tuple(column.name for column in schema)
    hidden = tuple(column.name for column in schema if column.origin is not None and column.origin.hidden)
    cases = []
    for record in log.bad_records(table):
        decision = decisions.get(record.id)
        if (entry := waiting.get(record.id)) is not None:
            cases.append(QuarantineCase(table, record, entry.since, entry.behind, False, columns, hidden, decision))
        elif record.window > control.window:
            cases.append(QuarantineCase(table, record, record.first_seen, 0, True, columns, hidden, decision))
    return sorted(cases, key=lambda case: case.record.record.order_key)


def record_decisions(
    replicator: Replicator,
    cases: Iterable[QuarantineCase],
    kind: DecisionKind,
    values: Mapping[str, Any],
    reason: str,
    actor: str,
) -> list[OperatorDecision]:
    """One decision per record. If the newest decision is the same, it is returned and nothing is written."""
    decisions = []
    for case in cases:
        newest = case.decision
        if newest is None or (newest.kind, newest.values) != (kind, dict(values)):
            newest = _write_decision(replicator, case, kind, values, reason, actor)
        decisions.append(newest)
    return decisions


def _write_decision(
    replicator: Replicator, case: QuarantineCase, kind: DecisionKind, values: Mapping[str, Any], reason: str, actor: str
) -> OperatorDecision:
    record = case.record.id
    decision = new_decision(
        kind,
        replicator.name,
        case.copy,
        actor,
        about=record,
        record=record,
        reason=reason,
        values=dict(values),
    )
    detail = {"table": case.copy, "record": record, "reason": reason, "columns": sorted(values)}
    replicator.state.write_audit(replicator.name, actor, f"quarantine {kind}", detail)
    replicator.log.write_decision(decision)
    return decision
