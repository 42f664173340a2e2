"""Whether a table accepts changes now, by its own control record."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState
from airflow_cdc_provider.targets.target import TargetState
from spark_jobs.runtime.job import Job


def require_writable(
    job: Job, task: TableTask, more_states: frozenset[TableState]
) -> tuple[ControlRecord, TargetState]:
    """The control record and the state of the target. Raises ForeignTarget where the target has no table of this
    replicator, Fenced where the table does not accept changes now. ``more_states``: states allowed beside replicating
    and failing."""
    current = job.tables.state(task.table, task.target)
    if current.control is None:
        raise ForeignTarget.of(
            "TGT012",
            "the target has no table of this replicator",
            where=job.tables.locate(task.target),
            found="a table without a control record, or one restored to a version before its first copy"
            if current.exists
            else "no table",
            do=f"airflow cdc resync {job.step.definition.name} --table {in_shell(task.table)}",
            data="the change log keeps what is not applied",
        )
    state = current.control.state.name
    if current.restored or state not in TAKES_CHANGES | more_states:
        raise Fenced.of(
            "TGT033",
            f"{task.table} does not accept changes in its current state",
            where=job.tables.locate(task.target),
            found="a restore by another writer" if current.restored else f"state {state}",
            allowed=", ".join(sorted(TAKES_CHANGES | more_states)),
            do="nothing: the next run decides by the state of the table",
            data="the change log keeps what is not applied",
        )
    return current.control, current


def require_expected_fence(task: TableTask, control: ControlRecord) -> None:
    """Raises Fenced where the fence was raised after the run planned this attempt: the attempt was shut out before it
    read the table, and must not continue under the new fence."""
    expected = task.control.fence if task.control else None
    if expected != control.fence:
        raise Fenced.of(
            "TGT035",
            f"{task.table} was taken over before this attempt began",
            where=task.table,
            found=f"fence {control.fence}",
            allowed="no table" if expected is None else f"fence {expected}",
            do="nothing: the attempt that raised the fence continues, or the next run does",
            data="nothing was written",
        )


def require_current_batch(batch_fence: int, batch_window: int, control: ControlRecord, current: TargetState) -> None:
    """Raises Fenced where the table has changed since the batch was built."""
    if (control.fence, control.window) != (batch_fence, batch_window):
        raise Fenced.of(
            "TGT034",
            "the batch was built on an older state of the table",
            where=control.table,
            found=f"fence {control.fence}, window {control.window}, version {current.version}",
            allowed=f"fence {batch_fence}, window {batch_window}",
            do="nothing: the next run stages again",
            data="the table has the newer commit",
        )
