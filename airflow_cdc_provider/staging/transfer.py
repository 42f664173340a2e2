"""Copies all files of a store to another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import LOG
from airflow_cdc_provider.staging.store import Store

BUFFER_BYTES = 1 << 20


def copy_files(source: Store, target: Store, check: Callable[[], object]) -> int:
    """Copy the change log in ``source``, which does not change, over what an earlier process has copied. Returns the
    number of files. A ``source`` without a log replaces nothing. ``check`` raises, immediately before each effect, if
    another process copies now. Raises StagingUnavailable (STG012) if the copy differs in names or sizes."""
    left = list(target.files(""))
    files = sorted(source.files(""), key=lambda file: file.path)
    if any(file.path == LOG for file in files):
        for file in left:
            check()
            target.delete(file.path)
    for file in files:
        check()
        with source.open_input(file.path) as content, target.open_output(file.path) as copy:
            shutil.copyfileobj(content, copy, BUFFER_BYTES)
        failpoint("transfer.file")
    check()
    copied = sorted(target.files(""), key=lambda file: file.path)
    if copied != files:
        raise StagingUnavailable.of(
            "STG012",
            "the copy of a staging folder differs from it",
            where=target.root,
            found=f"{len(copied)} files, {sum(file.bytes for file in copied)} bytes",
            allowed=f"{len(files)} files, {sum(file.bytes for file in files)} bytes",
            do="find out what else writes to either folder, and repeat the command",
            data="the old folder is unchanged and in use",
        )
    return len(files)
