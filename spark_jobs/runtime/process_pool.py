"""Processes of this machine for what Python does in one thread only."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

PRELOADED = ("spark_jobs.copies.split_copy", "spark_jobs.windows.split_reader", "pyarrow.csv", "psycopg")
"""What a share needs, imported once and not in every process. A package that is not installed is passed over."""

PARENT_IS_GONE = 143


def pool(cores: int) -> ProcessPoolExecutor:
    """They are made when first needed, of a server that holds no threads and no connections, and end with us however
    we end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return ProcessPoolExecutor(cores, context, _follow_parent)


def _follow_parent() -> None:
    threading.Thread(target=_wait_for_parent, daemon=True, name="parent").start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this runs in a child"
    parent.join()
    os._exit(PARENT_IS_GONE)
