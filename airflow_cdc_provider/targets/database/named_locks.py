"""The locks of servers whose locks have names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class NamedLocks(ABC):
    schema: str

    @abstractmethod
    def _lock(self, cursor: Any, name: str) -> None: ...

    def lock_table(self, cursor: Any, target_table: str) -> None:
        self._lock(cursor, f"cdc:{self.schema}.{target_table}")

    def lock_cut(self, cursor: Any, replicator: str) -> None:
        self._lock(cursor, f"cdc:cut:{replicator}")

    def lock_own_tables(self, cursor: Any) -> None:
        self._lock(cursor, "cdc:control")
