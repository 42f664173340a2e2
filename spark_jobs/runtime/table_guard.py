"""Whether a table may take changes now, asked of the table itself."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.runtime.job import Job


def require_current(job: Job, task: TableTask, also: frozenset[TableState]) -> tuple[ControlRecord, TargetState]:
    """The control record and what else stands in the target. Raises ForeignTarget where no table of ours is there,
    Fenced where the table takes no changes now."""
    held = job.tables.state(task.table, task.target)
    if held.control is None:
        raise ForeignTarget(
            Problem(
                "TGT012",
                "the target holds no table of ours",
                where=job.tables.locate(task.target),
                found="a foreign table, or one restored to before our first copy" if held.exists else "no table",
                do=f"airflow cdc resync {job.step.definition.name} --table {task.table}",
                data="the change log keeps what is not applied",
            )
        )
    state = held.control.state.name
    if held.restored or state not in TAKES_CHANGES | also:
        raise Fenced(
            Problem(
                "TGT033",
                f"{task.table} takes no changes now",
                where=job.tables.locate(task.target),
                found="a restore by somebody else" if held.restored else f"state {state}",
                allowed=", ".join(sorted(TAKES_CHANGES | also)),
                do="nothing: the next run decides by what the table holds",
                data="the change log keeps what is not applied",
            )
        )
    return held.control, held


def require_expected_fence(task: TableTask, control: ControlRecord) -> None:
    """Raises Fenced where somebody raised the fence since this attempt was told of the table: it was shut out before it
    had looked, and must not go on under a fence that was raised against it."""
    told = task.control.fence if task.control else None
    if told != control.fence:
        raise Fenced(
            Problem(
                "TGT035",
                f"{task.table} was taken over before this attempt began",
                where=task.table,
                found=f"fence {control.fence}",
                allowed="no table" if told is None else f"fence {told}",
                do="nothing: whoever raised the fence goes on, or the next run does",
                data="nothing was written",
            )
        )


def is_unchanged(batch_fence: int, batch_window: int, control: ControlRecord, held: TargetState) -> None:
    """Raises Fenced where the table is not what a batch was built on."""
    if (control.fence, control.window) != (batch_fence, batch_window):
        raise Fenced(
            Problem(
                "TGT034",
                "the batch was built on an older state of the table",
                where=control.table,
                found=f"fence {control.fence}, window {control.window}, version {held.version}",
                allowed=f"fence {batch_fence}, window {batch_window}",
                do="nothing: the next run stages again",
                data="the table holds the other commit",
            )
        )
