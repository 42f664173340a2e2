"""The storage interface of the change log."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

from airflow_cdc_provider.core.errors import Problem, StagingInvalid


@dataclass(frozen=True)
class StoredFile:
    path: str
    bytes: int


class Store(Protocol):
    """A folder or a bucket prefix. Paths are relative to it, with ``/``. Every method raises StagingUnavailable
    (STG010) if the storage fails, StagingInvalid (STG007) for a path outside of it, FileNotFoundError for a missing
    file."""

    root: str
    """Absolute folder or URL."""

    def url(self, path: str) -> str:
        """The URL of a path, for Spark and other libraries."""

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that must not exist yet, durably and atomically. False if it exists: another writer was first,
        or the response to an earlier request of this one was lost; compare the content."""

    def write(self, path: str, content: bytes) -> None:
        """Write or replace a file atomically."""

    def open_output(self, path: str) -> BinaryIO:
        """A new file for sequential writes; closing makes it durable."""

    def open_input(self, path: str) -> BinaryIO:
        """A file for random reads."""

    def names(self, path: str) -> list[str]:
        """Names of files and folders directly under ``path``, sorted; empty if there is no such folder."""

    def files(self, path: str) -> Iterator[StoredFile]:
        """All files below ``path``, at any depth, in no order; none if there is no such folder."""

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with its content; an empty path is the root. A missing path and concurrent removal
        are not errors."""


def require_inside(root: str, path: str) -> None:
    """Checks paths, which may come from manifests and plans in staging. Raises StagingInvalid (STG007)."""
    if path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise path_outside(root, path)


def path_outside(root: str, found: str) -> StagingInvalid:
    return StagingInvalid.of(
        "STG007",
        "a path is outside of staging, or is a link",
        where=root,
        found=found,
        allowed="files and folders below it, no links and no `..`; the folder itself may be a link",
        do="find out what created it; replace the link by its target, or restore the staging folder",
        data="nothing was read or written there; target tables are unchanged",
    )


def supports_exclusive_create(store: Store) -> bool:
    """Test exclusive creation with a temporary file. Without it no window may be sealed."""
    name = f".check-{uuid.uuid4().hex}"
    first = store.create(name, b"check")
    try:
        return first and not store.create(name, b"again")
    finally:
        store.delete(name)


def store_problems(store: Store) -> list[Problem]:
    """A store must support exclusive creation. Raises StagingUnavailable if it is not writable."""
    return [] if supports_exclusive_create(store) else [not_exclusive(store)]


def not_exclusive(store: Store) -> Problem:
    return Problem(
        "ENV004",
        "staging does not support exclusive creation of files",
        where=store.url(""),
        found="a file was created that exists already",
        do="use a file system with hard links, or an object store with conditional writes",
        data="nothing was sealed; two processes could both seal a window",
    )
