"""Waits that are long enough for a busy machine. Other hangs are stopped by the timeout of their test."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 600


def until(true: Callable[[], object], what: str, every_s: float = 0.05) -> None:
    """Raises AssertionError with ``what`` it waited for."""
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(every_s)
