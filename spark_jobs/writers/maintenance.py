"""Keep a target table in shape, after a batch and in the same lane: no merge of ours can be under way then.

No chore changes a row or moves the cursor, so nothing is lost where one dies; the next look finds what is left to do.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.failures import first_line
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import open_writer

EVERY_WINDOWS = 10
"""Looking costs a moment, too, and what a few merges leave behind harms nobody."""


def maintain_table(job: Job, work: TableWork, record: ControlRecord) -> dict[str, Any]:
    """What was done, for ``TableResult.detail``. Versions stay readable as far back as the change log reaches: what a
    table is taken back to must be brought up to date from there."""
    if record.window % EVERY_WINDOWS:
        return {}
    keep: timedelta = job.step.definition.staging.retain
    writer = open_writer(job.step.definition.target.type, work.session, job.tables)
    with work.phase("upkeep"):
        try:
            failpoint("upkeep.before")
            done = writer.maintain(work.task, keep)
            failpoint("upkeep.after")
        except Exception as error:  # the batch is applied; a chore that failed, however, must not say that it is not
            log_line(f"{work.task.table}: upkeep put off: {first_line(error)}")
            return {"upkeep": "put off"}
    return {"upkeep": ", ".join(done)} if done else {}
