"""Processes of this machine, for Python work that the global interpreter lock would serialise."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

PRELOADED = ("spark_jobs.copies.split_copy", "spark_jobs.windows.split_reader", "pyarrow.csv", "psycopg")
"""The modules that reading a split imports, loaded once instead of in every process. A package that is not installed is
skipped."""

EXIT_PARENT_ENDED = 143


def process_pool(cores: int) -> ProcessPoolExecutor:
    """Processes are forked on first use from a server without threads and connections, and end with this process
    however it ends."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return ProcessPoolExecutor(cores, context, _exit_with_parent)


def _exit_with_parent() -> None:
    threading.Thread(target=_wait_for_parent, daemon=True, name="parent").start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "runs in a child process"
    parent.join()
    os._exit(EXIT_PARENT_ENDED)
