"""A store in a folder on a file system that all workers and executors share."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.staging.store import StoredFile, path_outside, require_inside

HAS_HARD_LINKS = "a file system with hard links: ext4, XFS, Btrfs, ZFS, NFS"
NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Error numbers of file systems without ``link()``."""


class LocalStore:
    """Files are created exclusively with ``link()``: one of two writers gets EEXIST, also over NFS, and no reader sees
    a partial file."""

    def __init__(self, root: str) -> None:
        self.root = root.removeprefix("file://").rstrip("/")

    def url(self, path: str) -> str:
        with self._guarded("check for", path):
            return f"{self.root}/{path}"

    def read(self, path: str) -> bytes:
        with self._guarded("read", path) as target:
            return target.read_bytes()

    def exists(self, path: str) -> bool:
        with self._guarded("check for", path) as target:
            return target.exists()

    def create(self, path: str, content: bytes) -> bool:
        with self._guarded("create", path) as target, self._temporary(target, content) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError as error:
                raise (self._no_hard_links(path, error) if error.errno in NO_HARD_LINKS else error) from None
            _sync_folder(target.parent)
        return True

    def write(self, path: str, content: bytes) -> None:
        with self._guarded("write", path) as target, self._temporary(target, content) as temporary:
            os.replace(temporary, target)
            _sync_folder(target.parent)

    def open_output(self, path: str) -> BinaryIO:
        with self._guarded("open", path) as target:
            target.parent.mkdir(parents=True, exist_ok=True)
            return io.BufferedWriter(_DurableFile(target, "xb"))

    def open_input(self, path: str) -> BinaryIO:
        with self._guarded("open", path) as target:
            return target.open("rb")

    def names(self, path: str) -> list[str]:
        with self._guarded("list", path) as target:
            try:
                return sorted(entry.name for entry in os.scandir(target) if not entry.name.startswith("."))
            except FileNotFoundError:
                return []

    def files(self, path: str) -> Iterator[StoredFile]:
        with self._guarded("list", path) as target:
            for folder, _, names in os.walk(target, onerror=_raise_unless_missing):
                for name in names:
                    file = Path(folder, name)
                    with contextlib.suppress(FileNotFoundError):  # another process removes its temporary files
                        yield StoredFile(file.relative_to(self.root).as_posix(), file.stat().st_size)

    def delete(self, path: str) -> None:
        with self._guarded("delete", path) as target:
            while target.is_dir() and not target.is_symlink():
                # Another process may delete the same folder: a file that it removed first is missing here.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(target)
            if target.is_symlink():  # the root
                for entry in os.scandir(target):
                    self.delete(entry.name)
            else:
                target.unlink(missing_ok=True)

    def _path(self, path: str) -> Path:
        require_inside(self.root, path)
        current = Path(self.root)
        for part in PurePosixPath(path).parts:
            current /= part
            if current.is_symlink():
                raise path_outside(self.root, str(current.relative_to(self.root)))
        return Path(self.root, path)

    @contextlib.contextmanager
    def _temporary(self, target: Path, content: bytes) -> Iterator[Path]:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
        try:
            with temporary.open("xb") as file:
                failpoint("store.write")
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _no_hard_links(self, path: str, error: OSError) -> StagingUnavailable:
        return StagingUnavailable.of(
            "STG011",
            "the file system cannot create a file exclusively",
            where=f"{self.root}/{path}",
            found=f"link(): {error.strerror}",
            allowed=HAS_HARD_LINKS,
            do="move the folder to such a file system; without hard links two writers could both succeed",
            data="sealed windows and target tables are unchanged",
        )

    @contextlib.contextmanager
    def _guarded(self, verb: str, path: str) -> Iterator[Path]:
        try:
            yield self._path(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StagingUnavailable.of(
                "STG010",
                f"cannot {verb} a file in staging",
                where=f"{self.root}/{path}",
                found=error.strerror or type(error).__name__,
                do="free space or correct the permissions of staging; the next run continues",
                data="sealed windows and target tables are unchanged",
            ) from error


class _DurableFile(io.FileIO):
    """A file that is synced to disk when it is closed."""

    def close(self) -> None:
        try:
            if not self.closed:
                os.fsync(self.fileno())
        finally:
            super().close()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
