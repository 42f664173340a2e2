"""A new file of a store as libraries write it: they ask where they are, and not every store can say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from airflow_cdc_provider.staging.store import Store


class Sink(ABC):
    """Whoever writes such a file says in ``guarded`` what it means that the store fails."""

    def __init__(self, store: Store, path: str) -> None:
        self.bytes = 0
        self.where = store.url(path)
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
