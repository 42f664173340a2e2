"""A limit for the rate at which a reader of the source reads rows."""

from __future__ import annotations

import time
from collections.abc import Callable

CREDIT_S = 1.0
"""A reader that was slower than its rate catches up with this much of it."""


class Throttle:
    """A token bucket: over any period, at most ``rows_per_second`` times its length, the credit, and one piece."""

    def __init__(
        self,
        rows_per_second: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """None: no limit."""
        self._rate, self._clock, self._sleep = rows_per_second, clock, sleep
        self._due = clock()

    def passed(self, rows: int) -> None:
        """Returns when the reader may read its next piece."""
        if self._rate is None:
            return
        now = self._clock()
        self._due = max(self._due, now - CREDIT_S) + rows / self._rate
        if self._due > now:
            self._sleep(self._due - now)
