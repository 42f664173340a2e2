"""New files in a store that a library writes."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from airflow_cdc_provider.core.errors import StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.staging.store import Store


class OutputStream(ABC):
    """An output file that counts its bytes: writers need the offset, which not every store has. Subclasses translate
    errors of the store in ``guarded``."""

    def __init__(self, store: Store, path: str) -> None:
        self.bytes = 0
        self.where = store.url(path)
        self._store, self._path = store, path
        with self.guarded():
            self._output = store.open_output(path)

    @abstractmethod
    def guarded(self) -> AbstractContextManager[None]:
        """Wraps every call of the store."""

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, content: bytes) -> int:
        with self.guarded():
            self._output.write(content)
        self.bytes += len(content)
        return len(content)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        with self.guarded():
            self._output.flush()

    def close(self) -> None:
        with self.guarded():
            self._output.close()

    def delete(self) -> None:
        with self.guarded():
            self._store.delete(self._path)


class FileWriter(Protocol):
    def close(self) -> None: ...


W = TypeVar("W", bound=FileWriter)


class NewFile(Generic[W]):
    """A file that the ``writer`` returned by ``begin`` writes to ``sink``. Raises the errors of the sink."""

    def __init__(self, sink: OutputStream, begin: Callable[[OutputStream], W]) -> None:
        self.sink = sink
        self._closers = [sink.close]
        try:
            self.writer = begin(sink)
        except BaseException:
            self.discard()
            raise
        self._closers.insert(0, self.writer.close)

    def close(self) -> None:
        for close in self._closers:
            close()

    def discard(self) -> None:
        """Close and delete the file, ignoring errors of the store: no other file refers to it."""
        for call in (*self._closers, self.sink.delete):
            with contextlib.suppress(StagingUnavailable, TargetUnavailable):
                call()
