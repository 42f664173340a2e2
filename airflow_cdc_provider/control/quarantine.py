"""Bad records as an operator sees them, and what was decided about them, written down before anything acts on it.

What is decided stands under ``decisions/``; the stage step goes by it whenever it meets the record, in the carry-over
or, where the table stopped before it, in the change log. So a decision may be made twice, and a run may die anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.operator_decisions import (
    DecisionKind,
    OperatorDecision,
    decision_path,
    decisions_by_record,
)
from airflow_cdc_provider.core.log.quarantine import BadRecord
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord


@dataclass(frozen=True)
class QuarantineCase:
    """``behind``: records of its key that wait for it. ``stops``: the table stands before its window because of it.
    ``columns``: those of the table. ``decision``: the newest one about it."""

    record: BadRecord
    since: str
    behind: int = 0
    stops: bool = False
    columns: tuple[str, ...] = ()
    decision: OperatorDecision | None = None


def open_cases(replicator: Replicator, table: str, control: ControlRecord) -> list[QuarantineCase]:
    """What waits for an operator, in the order of the change log: what the table has put aside, and what it stopped
    before."""
    log = replicator.log
    decisions = decisions_by_record(log.decisions(), table)
    waiting = {one.id: one for one in log.quarantined_records(control.carry)}
    columns = control.schema.names if control.schema else ()
    cases = []
    for record in log.bad_records(table):
        decision = decisions.get(record.id)
        if (one := waiting.get(record.id)) is not None:
            cases.append(QuarantineCase(record, one.since, one.behind, False, columns, decision))
        elif record.window > control.window:
            cases.append(QuarantineCase(record, record.first_seen, 0, True, columns, decision))
    return sorted(cases, key=lambda case: case.record.record.order_key)


def decide_about(
    replicator: Replicator,
    cases: Iterable[QuarantineCase],
    kind: DecisionKind,
    values: Mapping[str, Any],
    reason: str,
    by: str,
) -> list[OperatorDecision]:
    """One decision per record. One that says what the newest says already is that one: nothing is written."""
    made = []
    for case in cases:
        newest = case.decision
        if newest is None or (newest.kind, newest.values) != (kind, dict(values)):
            newest = _written(replicator, case.record, kind, values, reason, by)
        made.append(newest)
    return made


def _written(
    replicator: Replicator, record: BadRecord, kind: DecisionKind, values: Mapping[str, Any], reason: str, by: str
) -> OperatorDecision:
    moment = datetime.now(UTC)
    decision = OperatorDecision(
        id=f"{moment:%Y%m%dT%H%M%S%f}-{record.id}",
        kind=kind,
        replicator=replicator.name,
        table=record.table,
        decided_by=by,
        decided_at=moment.isoformat(timespec="milliseconds"),
        reason=reason,
        record=record.id,
        values=dict(values),
    )
    detail = {"table": record.table, "record": record.id, "reason": reason, "columns": sorted(values)}
    replicator.state.write_audit(replicator.name, by, f"quarantine {kind}", detail)
    replicator.log.store.create(decision_path(decision.id), json.dumps(to_plain(decision)).encode())
    return decision
