"""Copies all files of a store to another one."""

from __future__ import annotations

import shutil

from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.staging.store import Store

BUFFER_BYTES = 1 << 20


def copy_files(source: Store, target: Store) -> int:
    """Replace the content of ``target`` by that of ``source``, which does not change. Returns the number of files.
    Raises StagingUnavailable (STG012) if the copy differs in names or sizes."""
    target.delete("")
    files = sorted(source.files(""), key=lambda file: file.path)
    for file in files:
        with source.open_input(file.path) as content, target.open_output(file.path) as copy:
            shutil.copyfileobj(content, copy, BUFFER_BYTES)
        failpoint("transfer.file")
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
