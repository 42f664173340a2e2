"""The times of commits: each is later than the one before."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Times are microseconds since 1970."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last = max(time.time_ns() // 1_000, self.last + 1)
        return self.last


def as_text(moment: int) -> str:
    """As Spanner writes a timestamp."""
    written = (EPOCH + timedelta(microseconds=moment)).isoformat(timespec="microseconds").removesuffix("+00:00")
    return f"{written.rstrip('0').rstrip('.')}Z"
