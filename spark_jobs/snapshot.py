"""The first copy of every pending table.

Dies before a table's commit: the table is not there, the next attempt copies it again. Dies after it: the next attempt
finds the copy and leaves it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from airflow_cdc_provider.core.decisions.steps import Outcome, StepResult, TableResult
from airflow_cdc_provider.core.errors import ForeignTarget, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.copies.copied_rows import rows_of
from spark_jobs.copies.copying import (
    commit_copy,
    control_before,
    for_each_copy,
    opened_copy,
    prepare_copy,
    record_of,
    table_status,
)
from spark_jobs.runtime import harness
from spark_jobs.runtime.job import Job, TableWork

TAKES_A_FIRST_COPY = frozenset({TableState.PENDING, TableState.SNAPSHOTTING, TableState.DROPPED})


def run(job: Job) -> StepResult:
    return for_each_copy(job, partial(first_copy, job))


def first_copy(job: Job, work: TableWork) -> TableResult:
    """Copy one table, unless its copy is there. Raises ForeignTarget where the place is taken by a table not ours."""
    task = work.task
    named, held = table_status(job, task)
    if held.exists and held.control is None:
        raise ForeignTarget(
            Problem(
                "CPY002",
                f"{task.table} cannot be copied: its place is taken by a table of somebody else",
                where=job.tables.locate(task.target),
                found="a table without a control record of ours",
                do="move that table away, or give this one another `target` in the definition",
                data="the table was not touched",
            )
        )
    if held.control is not None and held.control.state.name not in TAKES_A_FIRST_COPY:
        return work.result(Outcome.UNCHANGED, fence=held.control.fence, window=held.control.window)
    job = control_before(job, task)
    with opened_copy(job, task, job.step.window) as copy, rows_of(job, work, copy) as rows:
        failpoint("copy.anchored")
        commit = prepare_copy(job, work, copy, rows)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        state = State(TableState.REPLICATING, since=now, reason="first copy", set_by="snapshot")
        record = record_of(job, task, named, held, copy, state)
        return commit_copy(job, work, rows, commit, record)


if __name__ == "__main__":
    harness.main(run)
