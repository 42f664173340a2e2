"""A new file of a store that a library writes."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from airflow_cdc_provider.core.errors import StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.staging.store import Store


class OutputStream(ABC):
    """Its bytes: writers ask where they are, and not every store can say. Whoever makes such a file says in
    ``guarded`` what it means that the store fails."""

    def __init__(self, store: Store, path: str) -> None:
        self.bytes = 0
        self.where = store.url(path)
        self._store, self._path = store, path
        with self.guarded():
            self._output = store.open_output(path)

    @abstractmethod
    def guarded(self) -> AbstractContextManager[None]:
        """Around every call of the store."""

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
    """One being written by the ``writer`` that ``begin`` makes over ``sink``. Raises what the sink raises."""

    def __init__(self, sink: OutputStream, begin: Callable[[OutputStream], W]) -> None:
        self.sink = sink
        self._ends = [sink.close]
        try:
            self.writer = begin(sink)
        except BaseException:
            self.discard()
            raise
        self._ends.insert(0, self.writer.close)

    def close(self) -> None:
        for end in self._ends:
            end()

    def discard(self) -> None:
        """Close the file and take it away, as far as the store lets us; nothing names it."""
        for end in (*self._ends, self.sink.delete):
            with contextlib.suppress(StagingUnavailable, TargetUnavailable):
                end()
