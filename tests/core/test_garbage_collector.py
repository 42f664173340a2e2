"""When a split may disable the garbage collector, which belongs to the whole process."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

from spark_jobs.windows.split_reader import gc_disabled


def collecting() -> bool:
    with gc_disabled():
        return gc.isenabled()


def test_a_split_alone_in_its_process_disables_the_collector() -> None:
    assert not collecting()
    assert gc.isenabled()


def test_a_split_beside_others_leaves_the_collector_on() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(collecting).result()


def test_a_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        assert not collecting()
        assert not gc.isenabled()
    finally:
        gc.enable()
