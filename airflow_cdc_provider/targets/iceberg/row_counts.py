"""The number of rows of an Iceberg table, from its manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_cdc_provider.core.table.own_rows import OwnRows

FILE_PATH_ID = 2147483546
"""Field id of ``file_path`` in position delete files, reserved by the Iceberg specification."""


def live_rows(tasks: Iterable[Any]) -> int | None:
    """``tasks``: the data files of a snapshot with their delete files, as from ``plan_files``. None if a delete file
    may cover several data files: its rows could only be counted by reading it. Our own merges write one delete file per
    data file."""
    rows = 0
    for task in tasks:
        if not all(_is_for_one_file(file) for file in task.delete_files):
            return None
        rows += task.file.record_count - sum(file.record_count for file in task.delete_files)
    return rows


def count_own(table: Any, own: OwnRows) -> int:
    """Without reading files that have rows of one copy only."""
    from pyiceberg.expressions import EqualTo

    return int(table.scan(row_filter=EqualTo(own.column.name, own.value)).count())


def _is_for_one_file(delete_file: Any) -> bool:
    bounds = delete_file.lower_bounds, delete_file.upper_bounds
    lower, upper = ((bound or {}).get(FILE_PATH_ID) for bound in bounds)
    return lower is not None and lower == upper
