"""The garbage collector belongs to the whole process."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

from spark_jobs.windows.split_reader import gc_disabled


def collecting() -> bool:
    with gc_disabled():
        return gc.isenabled()


def test_a_share_that_has_its_process_to_itself_is_not_looked_through() -> None:
    assert not collecting()
    assert gc.isenabled()


def test_a_share_beside_others_leaves_the_collector_on() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(collecting).result()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        assert not collecting()
        assert not gc.isenabled()
    finally:
        gc.enable()
