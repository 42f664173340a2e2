"""Files under a folder of this host, without following links. Others may write there: a link would make any file that a
worker can read a file of events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from errno import ELOOP, ENOTDIR
from pathlib import PurePosixPath
from typing import BinaryIO

from airflow_cdc_provider.core.errors import CheckFailed, Problem

UNREAD = (".", "_")
"""How names begin that nobody is to read: files being written, and marks that all was written."""
SHOWN = 3


def refuse_links(root: str) -> None:
    """Raises CheckFailed (SRC079) where there are links below ``root``, which may be one itself. Links to nothing, and
    those with names that nobody reads, count and do not count as files do."""
    found = list(_links(root))
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise _refused(root, ", ".join(sorted(found)[:SHOWN]) + more)


def open_file(root: str, path: str) -> BinaryIO:
    """Step by step, so that no step can become a link meanwhile. Raises FileNotFoundError, and CheckFailed (SRC079)
    where a step is a link or leads upwards."""
    *folders, name = PurePosixPath(path).parts
    if path.startswith("/") or ".." in (*folders, name):
        raise _refused(root, path)
    try:
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:  # no file is gone because its disk is not mounted here
        raise NotADirectoryError(ENOTDIR, "no such folder", root) from error
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at), "rb")
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise _refused(root, path) from None
        raise
    finally:
        os.close(at)


def _links(folder: str, below: str = "") -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(UNREAD):
                continue
            if entry.is_symlink():
                yield below + entry.name
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(entry.path, f"{below}{entry.name}/")


def _refused(root: str, found: str) -> CheckFailed:
    return CheckFailed(
        Problem(
            "SRC079",
            "links and `..` in a folder of events are not followed",
            where=root,
            found=found,
            allowed="files and folders; the folder of `location` itself may be a link",
            do="put the files themselves there, or mount what they lie on, and remove the links",
            data="nothing was read beyond the last sealed window",
        )
    )
