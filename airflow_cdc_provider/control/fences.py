"""Commits without data: a table changes its state, or is taken over, and every older attempt is shut out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.core.table.states import State
from airflow_cdc_provider.targets.target import TargetState


def commit_fence(
    replicator: Replicator,
    table: str,
    target_table: str,
    held: TargetState,
    by: str,
    state: State | None = None,
    **changes: Any,
) -> ControlRecord:
    """Raise the fence of a table above every number ever named for it, and say so in the audit. ``held.control`` must
    be there. Raises Fenced where the table moved meanwhile, TargetUnavailable where the answer was lost."""
    assert held.control is not None
    record = held.control.fenced(state, attempt=by, committed_at=utc_now(), **changes)
    named = split_token(held.token)[0] if held.token is not None else 0
    record = replicator.target.fence(target_table, held, replace(record, fence=max(record.fence, named + 1)))
    detail = {"table": table, "fence": record.fence, "window": record.window, "state": record.state.name.value}
    replicator.state.write_audit(replicator.name, by, "fence", detail)
    return record


def with_control(task: TableTask, control: ControlRecord) -> TableTask:
    return replace(task, control=control, state=control.state.name)
