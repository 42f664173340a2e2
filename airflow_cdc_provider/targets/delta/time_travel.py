"""The versions that a Delta table can be restored to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")


def oldest_version(log_files: Iterable[str]) -> int | None:
    """The oldest version that ``_delta_log`` still describes: 0 while its commit is there, else that of the oldest
    checkpoint. None if there is neither."""
    names = list(log_files)
    if f"{0:020d}.json" in names:
        return 0
    checkpoints = [int(match[1]) for name in names if (match := CHECKPOINT.fullmatch(name))]
    return min(checkpoints, default=None)


def log_files(delta_table: Any) -> list[str]:
    """The file names in ``_delta_log`` of a ``deltalake.DeltaTable`` on any storage."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import FileSelector, PyFileSystem

    files = PyFileSystem(DeltaStorageHandler.from_table(delta_table._table))
    return [info.base_name for info in files.get_file_info(FileSelector("_delta_log"))]
