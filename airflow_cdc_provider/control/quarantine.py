"""Bad records for an operator, and the decisions about them, which are written before any step acts on them.

Decisions are files under ``decisions/``. The stage step applies a decision when it reads the record from the carry-over
or, for a table that stopped before the record, from the change log. So a decision may be repeated, and a run may crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.corrections import CorrectedTable
from airflow_cdc_provider.core.decisions.operator_decisions import (
    DecisionKind,
    OperatorDecision,
    decisions_by_record,
    new_decision,
)
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.log.quarantine import BadRecord
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import row_schema
from airflow_cdc_provider.core.table.own_rows import own_rows_of
from airflow_cdc_provider.staging.change_log import ChangeLog


@dataclass(frozen=True)
class QuarantineCase:
    """``table``: the copy that the record waits in. ``parked``: how many records of the same key wait for it.
    ``blocks_table``: the table has stopped before the record's window. ``decision``: the newest one about the
    record."""

    table: CorrectedTable
    record: BadRecord
    since: str
    parked: int = 0
    blocks_table: bool = False
    decision: OperatorDecision | None = None

    @property
    def copy(self) -> str:
        return self.table.copy


def corrected_table(copy: str, control: ControlRecord) -> CorrectedTable:
    schema = row_schema(control.schema) if control.schema else None
    return CorrectedTable(copy, schema, own_rows_of(control))


def open_cases(
    log: ChangeLog, table: str, control: ControlRecord, given: Sequence[OperatorDecision]
) -> list[QuarantineCase]:
    """The records that need a decision, in the order of the change log: those in the table's quarantine and those that
    stop the table. ``given``: all decisions of the log."""
    decisions = decisions_by_record(given, table)
    waiting = {entry.id: entry for entry in log.quarantined_records(control.carry)}
    described, cases = corrected_table(table, control), []
    for record in log.bad_records(table):
        decision = decisions.get(record.id)
        if (entry := waiting.get(record.id)) is not None:
            cases.append(QuarantineCase(described, record, entry.since, entry.behind, False, decision))
        elif record.window > control.window:
            cases.append(QuarantineCase(described, record, record.first_seen, 0, True, decision))
    return sorted(cases, key=lambda case: case.record.record.order_key)


def record_decisions(
    replicator: Replicator,
    decided: Iterable[tuple[QuarantineCase, Mapping[str, Any]]],
    kind: DecisionKind,
    reason: str,
    actor: str,
) -> list[OperatorDecision]:
    """One for each record. ``decided``: with canonical values. Where the newest decision is the same, it is returned
    and nothing is written."""
    same, new = list[OperatorDecision](), list[OperatorDecision]()
    for case, values in decided:
        newest = case.decision
        if newest is not None and newest.kind is kind and canonical(newest.values) == canonical(dict(values)):
            same.append(newest)
        else:
            new.append(_new_decision(replicator, case, kind, values, reason, actor))
    return [*same, *replicator.log.write_decisions(new)] if new else same


def _new_decision(
    replicator: Replicator, case: QuarantineCase, kind: DecisionKind, values: Mapping[str, Any], reason: str, actor: str
) -> OperatorDecision:
    """With its audit entry."""
    record = case.record.id
    detail = {"table": case.copy, "record": record, "reason": reason, "columns": sorted(values)}
    replicator.state.write_audit(replicator.name, actor, f"quarantine {kind}", detail)
    return new_decision(
        kind,
        replicator.name,
        case.copy,
        actor,
        about=record,
        record=record,
        reason=reason,
        values=dict(values),
    )
