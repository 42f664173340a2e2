"""Waits that no busy machine is too slow for. What hangs in any other way is stopped by the timeout of its test."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 600


def until(true: Callable[[], object], what: str, every_s: float = 0.05) -> None:
    """Raises AssertionError, with ``what`` was awaited."""
    give_up = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < give_up, f"not within {LIMIT_S} s: {what}"
        time.sleep(every_s)
