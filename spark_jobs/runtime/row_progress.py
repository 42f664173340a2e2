"""How many rows a task has read from its split so far, in a file that the driver reads while the task runs; and the
progress of a copy, in a file for others."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

from airflow_cdc_provider.core.decisions.steps import Step, TableTask
from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.log.change_log import table_folder
from airflow_cdc_provider.core.log.copy_progress import CopyProgress, Progress, progress_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.staging.store import Store
from spark_jobs.runtime.job import Job
from spark_jobs.runtime.progress import INTERVAL_S

ReportRows = Callable[[int], None]


def progress_reporter(store: Store, step: Step, split: str) -> ReportRows:
    """A function to call for every piece; it writes at most once per interval."""
    path, next_write = f"{_folder(step)}/{table_folder(split)}", time.monotonic() + INTERVAL_S

    def report(rows: int) -> None:
        nonlocal next_write
        if time.monotonic() >= next_write:
            next_write = time.monotonic() + INTERVAL_S
            store.write(path, str(rows).encode())

    return report


def read_progress(store: Store, step: Step, prefix: str = "") -> int:
    """The rows of all splits whose names start with ``prefix``."""
    folder, file_prefix = _folder(step), table_folder(prefix) if prefix else ""
    names = [name for name in store.names(folder) if name.startswith(file_prefix)]
    return sum(int(json.loads(store.read(f"{folder}/{name}"))) for name in names)


def save_progress(job: Job, task: TableTask, progress: Progress, seconds: float) -> None:
    """For ``airflow cdc status``. Its loss does not stop a copy."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    saved = CopyProgress(job.step.run_id, at, round(seconds, 1), progress)
    with contextlib.suppress(StagingUnavailable):
        job.log.store.write(progress_path(task.table), json.dumps(to_plain(saved)).encode())


def _folder(step: Step) -> str:
    return f"{step.folder}/progress"
