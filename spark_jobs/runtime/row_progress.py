"""How many rows a share has brought so far, noted where the driver can read it while a task is at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.log.change_log import table_folder
from airflow_cdc_provider.staging.store import Store
from spark_jobs.runtime.progress import EVERY_S

Note = Callable[[int], None]


def record_progress(store: Store, step: Step, share: str) -> Note:
    """To be called often; it writes seldom."""
    path, next_at = f"{_folder(step)}/{table_folder(share)}", time.monotonic() + EVERY_S

    def note(rows: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + EVERY_S
            store.write(path, str(rows).encode())

    return note


def read_progress(store: Store, step: Step, shares: str = "") -> int:
    """Of all shares whose names begin so."""
    folder, beginning = _folder(step), table_folder(shares) if shares else ""
    names = [name for name in store.names(folder) if name.startswith(beginning)]
    return sum(int(json.loads(store.read(f"{folder}/{name}"))) for name in names)


def _folder(step: Step) -> str:
    return f"{step.folder}/progress"
