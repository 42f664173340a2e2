"""Progress lines during long work: at most one every five seconds."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spark_jobs.runtime.console import log_line

INTERVAL_S = 5.0


@dataclass(frozen=True)
class Progress:
    """``of`` is the estimated total of rows, None where it is unknown. ``fraction`` (0 to 1) is set where the progress
    is measured by something other than rows."""

    rows: int
    of: int | None = None
    fraction: float | None = None


@contextlib.contextmanager
def report_progress(name: str, read: Callable[[], Progress | None], interval_s: float = INTERVAL_S) -> Iterator[None]:
    """While the block runs, call ``read`` at intervals and print the result."""
    done = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        while not done.wait(interval_s):
            progress = read()
            if progress is not None:
                log_line(format_line(name, progress, time.monotonic() - started))

    thread = threading.Thread(target=watch, daemon=True, name=f"progress {name}")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def format_line(name: str, progress: Progress, seconds: float) -> str:
    """``public.orders: 1,200,000 rows, 400,000 rows/s, 60 % done, 2 s left``."""
    parts = [f"{name}: {progress.rows:,} rows", f"{progress.rows / max(seconds, 0.001):,.0f} rows/s"]
    fraction = progress.fraction
    if fraction is None and progress.of:
        fraction = min(progress.rows / progress.of, 1.0)
    if fraction:
        parts += [f"{fraction:.0%} done", f"{seconds * (1 - fraction) / fraction:,.0f} s left"]
    return ", ".join(parts)
