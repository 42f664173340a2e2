"""The state of a table from which a copy or a merge begins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, ForeignTarget, TargetUnavailable
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.common_checks import foreign_table
from airflow_cdc_provider.targets.fencing import superseded_by
from airflow_cdc_provider.targets.target import TargetState
from airflow_cdc_provider.targets.unversioned import UnversionedTarget
from spark_jobs.batches.staged_rows import StagedRows


def require_fit(state: TargetState) -> None:
    """Raises Blocked where the table does not take changes as it is."""
    if state.unfit:
        raise Blocked(state.unfit.problem)


def state_before_copy(tables: UnversionedTarget, task: TableTask, record: ControlRecord) -> TargetState:
    """In a target with control rows. Writes ``record`` to the change log. Raises ForeignTarget, and Fenced if its token
    does not increase or another attempt has claimed it."""
    current = tables.state(task.table, task.target)
    if current.exists and current.control is None and not task.rule.snapshot.takes_over:
        raise ForeignTarget(foreign_table(tables.locate(task.target)))
    if (current.token is not None and record.token <= current.token) or not tables.log.write_control(record):
        raise superseded_by(current, record)
    return current


def state_before_merge(
    tables: UnversionedTarget, task: TableTask, rows: StagedRows, record: ControlRecord
) -> TargetState:
    """In a target with control rows. Raises Fenced if the batch does not follow the cursor of the table."""
    current, batch = tables.state(task.table, task.target), rows.batch
    control = current.control
    if control is None or control.token >= record.token or (not batch.repair and control.window != batch.lo_window):
        raise superseded_by(current, record)
    return current


@contextlib.contextmanager
def translate_lost_race(
    tables: UnversionedTarget, task: TableTask, before: TargetState, record: ControlRecord
) -> Iterator[None]:
    """A later attempt drops the tables that this one loads: the failure that follows is Fenced."""
    try:
        yield
    except TargetUnavailable:
        after = tables.state(task.table, task.target)
        if after != before:
            raise superseded_by(after, record) from None
        raise
