"""The org's own time. It follows the system clock until it is advanced or stopped, so tests can skip 72 hours."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


class Clock:
    """Milliseconds since 1970, UTC. ``freeze`` stops it, ``run`` starts it again."""

    def __init__(self) -> None:
        self._offset_ms = 0
        self._frozen_ms: int | None = None

    def now_ms(self) -> int:
        return self._frozen_ms if self._frozen_ms is not None else int(time.time() * 1000) + self._offset_ms

    def second(self) -> str:
        """The current second in the form of record timestamps: ``2026-11-21T10:00:00.000Z``."""
        return stamp(self.now_ms())

    def advance(self, seconds: float) -> None:
        if self._frozen_ms is not None:
            self._frozen_ms += int(seconds * 1000)
        else:
            self._offset_ms += int(seconds * 1000)

    def freeze(self) -> None:
        self._frozen_ms = self.now_ms()

    def run(self) -> None:
        if self._frozen_ms is not None:
            self._offset_ms = self._frozen_ms - int(time.time() * 1000)
            self._frozen_ms = None


def moment_text(ms: int) -> str:
    """With milliseconds: ``2026-11-21T10:00:00.123Z``."""
    return f"{_second(ms // 1000)}.{ms % 1000:03}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def stamp(ms: int) -> str:
    """Timestamps of records have whole seconds."""
    return moment_text(ms // 1000 * 1000)


@lru_cache(maxsize=100_000)
def milliseconds(text: str) -> int:
    """Milliseconds since 1970 of an ISO timestamp with a time zone."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
