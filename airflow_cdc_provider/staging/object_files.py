"""File objects over an object store, for libraries that read and write files."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import obstore

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ObjectStore as Bucket

Guard = Callable[[str], AbstractContextManager[None]]
"""Wraps a call of the library and translates its errors. The argument is a verb for the error message."""


class ObjectOutput(io.RawIOBase):
    """An upload. The object appears when it is closed, complete or not at all."""

    def __init__(self, upload: WritableFile, guard: Guard) -> None:
        self._upload = upload
        self._guard = guard

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        with self._guard("write"):
            return self._upload.write(content)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._guard("write"):
                self._upload.close()


class ObjectInput(io.RawIOBase):
    """An object of ``size`` bytes. Each read requests only the required range."""

    def __init__(self, bucket: Bucket, path: str, size: int, guard: Guard) -> None:
        self._bucket = bucket
        self._path = path
        self._size = size
        self._guard = guard
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._offset = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self._size}[whence]
        return self._offset

    def readinto(self, buffer: Any) -> int:
        end = min(self._offset + len(buffer), self._size)
        if end <= self._offset:
            return 0
        with self._guard("read"):
            content = obstore.get_range(self._bucket, self._path, start=self._offset, end=end)
        buffer[: len(content)] = memoryview(content)
        self._offset += len(content)
        return len(content)
