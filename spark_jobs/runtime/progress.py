"""Progress lines during long work: at most one every five seconds."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from airflow_cdc_provider.core.log.copy_progress import Progress, format_progress
from spark_jobs.runtime.console import log_line

INTERVAL_S = 5.0


@contextlib.contextmanager
def report_progress(
    name: str,
    read: Callable[[], Progress | None],
    save: Callable[[Progress, float], object] = lambda _, __: None,
    interval_s: float = INTERVAL_S,
) -> Iterator[None]:
    """While the block runs, call ``read`` at intervals; print the result, and pass it to ``save`` with the seconds
    since the start."""
    done = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        while not done.wait(interval_s):
            progress = read()
            if progress is not None:
                seconds = time.monotonic() - started
                log_line(f"{name}: {format_progress(progress, seconds)}")
                save(progress, seconds)

    thread = threading.Thread(target=watch, daemon=True, name=f"progress {name}")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
