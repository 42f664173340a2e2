"""How often one user may change something, or ask a source."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque

from fastapi import HTTPException, status

MINUTE_S = 60.0


class Rate:
    """Of this process: each process of the API server counts for itself."""

    def __init__(self, per_minute: int, what: str) -> None:
        self.per_minute, self.what = per_minute, what
        self._recent: dict[str, deque[float]] = defaultdict(deque)
        self._lock = threading.Lock()

    def require(self, user: str) -> None:
        """HTTP 429 if the user has used up the last minute."""
        with self._lock:
            now, recent = time.monotonic(), self._recent[user]
            while recent and recent[0] <= now - MINUTE_S:
                recent.popleft()
            if len(recent) >= self.per_minute:
                wait_s = int(recent[0] + MINUTE_S - now) + 1
                raise HTTPException(
                    status.HTTP_429_TOO_MANY_REQUESTS,
                    f"more than {self.per_minute} {self.what} in a minute",
                    {"Retry-After": str(wait_s)},
                )
            recent.append(now)
