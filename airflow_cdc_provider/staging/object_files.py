"""Objects as files, for libraries that read and write files."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import obstore

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import S3Store as Bucket

Guard = Callable[[str], AbstractContextManager[None]]
"""Around a call of the library: what it does in one word, for the message where it fails."""


class ObjectOutput(io.RawIOBase):
    """An upload. It is whole, or nothing, once it is closed."""

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
    """An object of ``size`` bytes. Each read asks for the bytes it needs and no more."""

    def __init__(self, bucket: Bucket, path: str, size: int, guard: Guard) -> None:
        self._bucket = bucket
        self._path = path
        self._size = size
        self._guard = guard
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        with self._guard("read"):
            content = obstore.get_range(self._bucket, self._path, start=self._at, end=end)
        buffer[: len(content)] = memoryview(content)
        self._at += len(content)
        return len(content)
