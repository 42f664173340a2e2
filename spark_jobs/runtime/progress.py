"""Progress lines while something long runs: at most one every five seconds."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_jobs.runtime.console import say

EVERY_S = 5.0


@dataclass(frozen=True)
class Progress:
    """``of`` is an estimate of the rows to come, None where nobody knows; ``share`` (0 to 1) where something else than
    the rows tells how far it is."""

    rows: int
    of: int | None = None
    share: float | None = None


@contextlib.contextmanager
def reported(name: str, look: Callable[[], Progress | None], every_s: float = EVERY_S) -> Iterator[None]:
    """While the block runs, ask ``look`` now and then and print what it says."""
    done = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        while not done.wait(every_s):
            seen = look()
            if seen is not None:
                say(line(name, seen, time.monotonic() - started))

    thread = threading.Thread(target=watch, daemon=True, name=f"progress {name}")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def line(name: str, seen: Progress, seconds: float) -> str:
    """``public.orders: 1,200,000 rows, 400,000 rows/s, 60 % done, 2 s left``."""
    parts = [f"{name}: {seen.rows:,} rows", f"{seen.rows / max(seconds, 0.001):,.0f} rows/s"]
    share = seen.share if seen.share is not None else min(seen.rows / seen.of, 1.0) if seen.of else None
    if share:
        parts += [f"{share:.0%} done", f"{seconds * (1 - share) / share:,.0f} s left"]
    return ", ".join(parts)
