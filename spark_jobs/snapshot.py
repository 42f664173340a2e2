"""The first copy of every pending table.

A crash before a table's commit leaves no table; the next attempt continues the copy if the source can read its splits
later, else it copies the table again. After the commit, the next attempt finds the copy and keeps it.
"""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from spark_jobs.copies.adopted_rows import adopted_rows
from spark_jobs.copies.copied_rows import open_copied_rows
from spark_jobs.copies.copying import (
    build_control_record,
    commit_copy,
    for_each_copy,
    prepare_copy,
    table_status,
    with_copy_window,
)
from spark_jobs.copies.kept_copy import must_catch_up, open_first_copy
from spark_jobs.copies.kept_splits import require_not_paused
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork

TAKES_A_FIRST_COPY = frozenset({TableState.PENDING, TableState.SNAPSHOTTING, TableState.DROPPED})


def run(job: Job) -> StepResult:
    return for_each_copy(job, first_copy)


def first_copy(job: Job, work: TableWork) -> TableResult:
    """Copy one table, unless it has a copy. Raises ForeignTarget where the target has a table of the same name without
    a control record."""
    task = work.task
    named_fence, current = table_status(job, task)
    takes_over = current.exists and current.control is None
    if takes_over and not task.rule.snapshot.takes_over:
        raise ForeignTarget.of(
            "CPY002",
            f"{task.table} cannot be copied: the target table exists and belongs to another owner",
            where=job.tables.locate(task.target),
            found="a table without a control record of this replicator",
            do="rename or drop that table, or set another `target` for this one in the definition",
            data="the table was not touched",
        )
    if current.control is not None and current.control.state.name not in TAKES_A_FIRST_COPY:
        return work.result(Outcome.UNCHANGED, fence=current.control.fence, window=current.control.window)
    job = with_copy_window(job, task)
    with (
        open_first_copy(job, task) as opened,
        open_copied_rows(job, work, opened.copy, opened.began, opened.kept) as rows,
    ):
        job, copy = opened.job, opened.copy
        failpoint("copy.anchored")
        rows = adopted_rows(job, work, copy, current) if takes_over else rows
        commit, read_end = prepare_copy(job, work, copy, rows)
        now = utc_now()
        reason = "first copy" if task.rule.snapshot.extent.rows else "started without a copy of its rows"
        state = State(TableState.REPLICATING, since=now, reason=reason, set_by="snapshot")
        catches_up = read_end if must_catch_up(opened, task) else None
        record = build_control_record(job, task, named_fence, current, copy, state, catches_up)
        require_not_paused(job.log.store, job.step.definition.name, task.table)
        return commit_copy(job, work, rows.progress, commit, record)


if __name__ == "__main__":
    harness.main(run)
