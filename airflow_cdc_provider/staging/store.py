"""What the change log asks of a storage system."""

from __future__ import annotations

import uuid
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

from airflow_cdc_provider.core.errors import Problem, StagingInvalid


class Store(Protocol):
    """A folder or bucket prefix. Paths are relative to it, with ``/``. Every method raises StagingUnavailable (STG010)
    where the storage fails, and StagingInvalid (STG007) for a path that leads out of it; missing files raise
    FileNotFoundError."""

    root: str
    """Absolute folder or URL."""

    def url(self, path: str) -> str:
        """What Spark and other libraries open."""

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that must not exist yet, durably and all at once. False where somebody else was first, or where
        we were and the answer was lost: the content tells."""

    def write(self, path: str, content: bytes) -> None:
        """Write or replace a file, all at once."""

    def open_output(self, path: str) -> BinaryIO:
        """A new file to be written as a stream; closing makes it durable."""

    def open_input(self, path: str) -> BinaryIO:
        """A file to be read in any order."""

    def names(self, path: str) -> list[str]:
        """Names of files and folders directly under ``path``, sorted; empty where there is no such folder."""

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all in it. Nothing there is no error, nor that others remove it too."""


def require_inside(root: str, path: str) -> None:
    """Paths stand in files of staging, too: in manifests and plans. Raises StagingInvalid (STG007)."""
    if path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise path_outside(root, path)


def path_outside(root: str, found: str) -> StagingInvalid:
    return StagingInvalid(
        Problem(
            "STG007",
            "a path in staging leads out of it, or is a link",
            where=root,
            found=found,
            allowed="files and folders below it, no links and no `..`; the folder itself may be a link",
            do="find out who wrote there; put what the link points to in its place, or restore the staging folder",
            data="nothing was read or written there; target tables are unchanged",
        )
    )


def supports_exclusive_create(store: Store) -> bool:
    """Try it out, and leave nothing behind. Without it no window may ever be sealed."""
    name = f".check-{uuid.uuid4().hex}"
    first = store.create(name, b"check")
    try:
        return first and not store.create(name, b"again")
    finally:
        store.delete(name)
