"""Commits without data: they change a table's state or owner, and the target then rejects every earlier attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_checks import check_store
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.core.table.states import State
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState


def commit_fence(
    replicator: Replicator,
    table: str,
    target_table: str,
    current: TargetState,
    actor: str,
    state: State | None = None,
    owner: str = "",
    **changes: Any,
) -> ControlRecord:
    """Raise the fencing token of a table above every token recorded for it, and write an audit entry. Requires
    ``current.control``. ``owner``: the id of the state store that the copy belongs to from now on; else it must belong
    to this one. Raises ForeignTarget (STA007) if it does not, Fenced if the table has a newer commit, TargetUnavailable
    if the answer was lost."""
    control = current.control
    assert control is not None
    own = replicator.state.owner()
    if not owner and (problem := check_store(replicator.name, table, target_table, control, own)):
        raise ForeignTarget(problem)
    record = next_record(current, actor, state=state, owner=owner or control.owner, **changes)
    record = replicator.targets.of(table).fence(target_table, current, record)
    detail = {"table": table, "fence": record.fence, "window": record.window, "state": record.state.name.value}
    replicator.state.write_audit(replicator.name, actor, "fence", detail)
    return record


def next_record(current: TargetState, actor: str, **changes: Any) -> ControlRecord:
    """The record of a commit without data, under a fence above every recorded one."""
    assert current.control is not None
    record = current.control.fenced(attempt=actor, committed_at=utc_now(), **changes)
    highest = split_token(current.token)[0] if current.token is not None else 0
    return replace(record, fence=max(record.fence, highest + 1))


def with_control(task: TableTask, control: ControlRecord) -> TableTask:
    return replace(task, control=control, state=control.state.name)
