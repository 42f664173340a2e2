"""SQL with its parameters, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Command:
    """``parameters`` stand for ``%s`` in the text. Without parameters a percent sign is itself."""

    text: str
    parameters: tuple[Any, ...] = ()

    def execute(self, cursor: Any) -> int:
        """Returns the number of rows that changed."""
        cursor.execute(self.text, self.parameters or None)
        return int(cursor.rowcount or 0)
