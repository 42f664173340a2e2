"""How many rows a task has read from its split so far, in a file that the driver reads while the task runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.log.change_log import table_folder
from airflow_cdc_provider.staging.store import Store
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


def _folder(step: Step) -> str:
    return f"{step.folder}/progress"
