"""Maintains a target table after a batch, in the same lane, so that no merge of ours runs at the same time.

Maintenance changes no row and does not move the cursor, so a failure loses nothing; a later run does what is left.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.upkeep import is_due
from spark_jobs.runtime.console import log_line
from spark_jobs.runtime.failures import first_line
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.writers.writer import open_writer


def maintain_table(job: Job, work: TableWork, before: int, record: ControlRecord) -> dict[str, Any]:
    """The tasks that were done, for ``TableResult.detail``. Versions stay readable as far back as the change log
    reaches, since a restored table has to catch up from there. ``before``: the cursor before the merge."""
    if not is_due(work.task.table, before, record.window):
        return {}
    keep: timedelta = job.step.definition.staging.retain
    writer = open_writer(job, work)
    with work.phase("upkeep"):
        try:
            failpoint("upkeep.before")
            done = writer.maintain(work.task, keep)
            failpoint("upkeep.after")
        except Exception as error:  # the batch is applied: a failure of its maintenance must not fail it
            log_line(f"{work.task.table}: maintenance postponed: {first_line(error)}")
            return {"upkeep": "postponed"}
    return {"upkeep": ", ".join(done)} if done else {}
