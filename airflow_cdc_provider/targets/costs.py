"""What a target bills for work: counted where jobs end, and collected per table by the code that began it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_collected: ContextVar[dict[str, int] | None] = ContextVar("collected", default=None)


@contextlib.contextmanager
def collected() -> Iterator[dict[str, int]]:
    """The sums by unit of all costs that this thread adds in the block."""
    sums: dict[str, int] = {}
    before = _collected.set(sums)
    try:
        yield sums
    finally:
        _collected.reset(before)


def add(unit: str, amount: int) -> None:
    """``unit``: with the name of what is counted, like ``bytes_billed``."""
    sums = _collected.get()
    if sums is not None and amount:
        sums[unit] = sums.get(unit, 0) + amount
