"""The first copy of every pending table.

A crash before a table's commit leaves no table; the next attempt copies it again. After the commit, the next attempt
finds the copy and keeps it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.copies.copied_rows import open_copied_rows
from spark_jobs.copies.copying import (
    build_control_record,
    commit_copy,
    for_each_copy,
    open_copy,
    prepare_copy,
    table_status,
    with_copy_window,
)
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork

TAKES_A_FIRST_COPY = frozenset({TableState.PENDING, TableState.SNAPSHOTTING, TableState.DROPPED})


def run(job: Job) -> StepResult:
    return for_each_copy(job, partial(first_copy, job))


def first_copy(job: Job, work: TableWork) -> TableResult:
    """Copy one table, unless it has a copy. Raises ForeignTarget where the target has a table of the same name without
    a control record."""
    task = work.task
    named_fence, current = table_status(job, task)
    if current.exists and current.control is None:
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
    began = datetime.now(UTC)
    with open_copy(job, task, job.step.window) as copy, open_copied_rows(job, work, copy, began) as rows:
        failpoint("copy.anchored")
        commit = prepare_copy(job, work, copy, rows)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        state = State(TableState.REPLICATING, since=now, reason="first copy", set_by="snapshot")
        record = build_control_record(job, task, named_fence, current, copy, state)
        return commit_copy(job, work, rows.progress, commit, record)


if __name__ == "__main__":
    harness.main(run)
