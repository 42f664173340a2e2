"""How far back a Delta table can be taken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")


def oldest_version(log_files: Iterable[str]) -> int | None:
    """The oldest version that can be rebuilt from what is left of ``_delta_log``: the first one, as long as its commit
    is there, else that of the oldest checkpoint. None where neither is to be seen."""
    names = list(log_files)
    if f"{0:020d}.json" in names:
        return 0
    checkpoints = [int(match[1]) for name in names if (match := CHECKPOINT.fullmatch(name))]
    return min(checkpoints, default=None)


def log_files(opened: Any) -> list[str]:
    """The names in ``_delta_log`` of a ``deltalake.DeltaTable``, wherever it stands."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import FileSelector, PyFileSystem

    files = PyFileSystem(DeltaStorageHandler.from_table(opened._table))
    return [info.base_name for info in files.get_file_info(FileSelector("_delta_log"))]
