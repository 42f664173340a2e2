"""Files in a local folder, without following links. Other users may write there: a link would turn any file that a
worker can read into an event file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from errno import ELOOP, ENOTDIR
from pathlib import PurePosixPath
from typing import BinaryIO

from airflow_cdc_provider.core.errors import CheckFailed

IGNORED_PREFIXES = (".", "_")
"""Prefixes of names that are not read: files in progress, and markers of complete output."""
SHOWN = 3


def refuse_links(root: str) -> None:
    """Raises CheckFailed (SRC079) if there are links below ``root``, also dangling ones. ``root`` itself may be a link.
    Links with ignored names are allowed."""
    links = list(_links(root))
    if links:
        more = f" and {len(links) - SHOWN} more" if len(links) > SHOWN else ""
        raise _link_error(root, ", ".join(sorted(links)[:SHOWN]) + more)


def open_file(root: str, path: str) -> BinaryIO:
    """Opens each folder of the path in turn, so that none can be replaced by a link in between. Raises
    FileNotFoundError, and CheckFailed (SRC079) if a part of the path is a link or ``..``."""
    *folders, name = PurePosixPath(path).parts
    if path.startswith("/") or ".." in (*folders, name):
        raise _link_error(root, path)
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:  # the disk may not be mounted: this must not count as a deleted file
        raise NotADirectoryError(ENOTDIR, "no such folder", root) from error
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=descriptor), "rb")
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise _link_error(root, path) from None
        raise
    finally:
        os.close(descriptor)


def _links(folder: str, prefix: str = "") -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(IGNORED_PREFIXES):
                continue
            if entry.is_symlink():
                yield prefix + entry.name
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(entry.path, f"{prefix}{entry.name}/")


def _link_error(root: str, found: str) -> CheckFailed:
    return CheckFailed.of(
        "SRC079",
        "links and `..` in a folder of event files are not followed",
        where=root,
        found=found,
        allowed="files and folders; the folder of `location` itself may be a link",
        do="move the files themselves there, or mount their file system, and remove the links",
        data="nothing was read after the last sealed window",
    )
