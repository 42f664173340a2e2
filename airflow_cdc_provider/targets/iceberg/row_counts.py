"""How many rows an Iceberg table holds, by its manifests alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

DELETED_FROM = 2147483546
"""Id of the column ``file_path`` of position deletes, reserved by the Iceberg specification."""


def live_rows(tasks: Iterable[Any]) -> int | None:
    """``tasks``: the data files of a snapshot with their delete files, as ``plan_files`` gives them. None where a
    delete file may name rows of several data files: only reading it would show which of those rows are still there.
    Our own merges write one delete file per data file."""
    rows = 0
    for task in tasks:
        if not all(_is_for_one_file(file) for file in task.delete_files):
            return None
        rows += task.file.record_count - sum(file.record_count for file in task.delete_files)
    return rows


def _is_for_one_file(deletes: Any) -> bool:
    lower, upper = ((bounds or {}).get(DELETED_FROM) for bounds in (deletes.lower_bounds, deletes.upper_bounds))
    return lower is not None and lower == upper
