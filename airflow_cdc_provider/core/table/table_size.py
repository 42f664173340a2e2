"""The size of a source table, as the source's statistics estimate it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableSize:
    """Approximate; None where the source has no statistics. ``bytes``: of its rows, as the source stores them."""

    rows: int | None = None
    bytes: int | None = None


UNKNOWN_SIZE = TableSize()
