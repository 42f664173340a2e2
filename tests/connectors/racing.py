"""Processes that create one file at the same moment."""

from __future__ import annotations

import time
from multiprocessing.synchronize import Barrier

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.staging.open_store import open_store

Where = tuple[str, ConnectionInfo]


def create_each_round(where: Where, rounds: int, number: int, barrier: Barrier) -> list[bool]:
    """Whether this process created the file of each round, whose content is then its number."""
    store = open_store(*where)
    store.exists("warm")
    created = []
    for at in range(rounds):
        barrier.wait()
        time.sleep(0.001 * ((number * at) % 3))
        created.append(store.create(f"{at}", str(number).encode()))
    return created
