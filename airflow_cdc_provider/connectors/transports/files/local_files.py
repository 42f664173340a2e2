"""Files in a local folder, without following links. Other users may write there: a link would turn any file that a
worker can read into an event file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from errno import ELOOP, ENOTDIR
from pathlib import PurePosixPath
from typing import BinaryIO

from airflow_cdc_provider.core.errors import CheckFailed

IGNORED_PREFIXES = (".", "_")
"""Prefixes of names that are not read: files in progress, and markers of complete output."""
SHOWN = 3


@dataclass(frozen=True)
class LocalFile:
    """``path``: relative to the folder. ``inode`` only identifies files in former positions: on a mounted file system
    each host has numbers of its own."""

    path: str
    size: int
    modified_ns: int
    inode: int


def local_files(root: str) -> Iterator[LocalFile]:
    """In no order. Raises CheckFailed (SRC079) in the end if there are links below ``root``, also dangling ones, or
    names that are no texts. ``root`` itself may be a link. Links with ignored names are allowed."""
    refused: list[str] = []
    try:
        yield from _files(root, "", refused)
    except FileNotFoundError as error:
        raise _no_folder(root) from error
    if refused:
        more = f" and {len(refused) - SHOWN} more" if len(refused) > SHOWN else ""
        raise _refused(root, ", ".join(sorted(refused)[:SHOWN]) + more)


def open_file(root: str, path: str) -> BinaryIO:
    """Opens each folder of the path in turn, so that none can be replaced by a link in between. Raises
    FileNotFoundError, and CheckFailed (SRC079) if a part of the path is a link or ``..``."""
    *folders, name = PurePosixPath(path).parts
    if path.startswith("/") or ".." in (*folders, name):
        raise _refused(root, path)
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise _no_folder(root) from error
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=descriptor), "rb")
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise _refused(root, path) from None
        raise
    finally:
        os.close(descriptor)


def _files(folder: str, prefix: str, refused: list[str]) -> Iterator[LocalFile]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(IGNORED_PREFIXES):
                continue
            path = prefix + entry.name
            if entry.is_symlink() or not _is_text(path):
                refused.append(os.fsencode(path).decode(errors="backslashreplace"))
                continue
            with suppress(FileNotFoundError):  # another process may remove it meanwhile
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, f"{path}/", refused)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield LocalFile(path, status.st_size, status.st_mtime_ns, status.st_ino)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_folder(root: str) -> OSError:
    """The disk may not be mounted: its files do not count as removed."""
    return NotADirectoryError(ENOTDIR, "no such folder", root)


def _refused(root: str, found: str) -> CheckFailed:
    return CheckFailed.of(
        "SRC079",
        "links, `..`, and names that are not UTF-8 are not read in a folder of event files",
        where=root,
        found=found,
        allowed="files and folders; the folder of `location` itself may be a link",
        do="move the files themselves there, or mount their file system, and remove the links; rename other files",
        data="nothing was read after the last sealed window",
    )
