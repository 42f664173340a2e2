"""Transactions that a server rolls back for the sake of another one. Without any effect, they can run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from airflow_cdc_provider.core.errors import TransactionConflict

DELAYS_S = (0.2, 1, 4, 10)

T = TypeVar("T")


def retry_conflicts(transaction: Callable[[], T]) -> T:
    """``transaction`` reads what it depends on. Raises TransactionConflict after the last try."""
    for delay_s in DELAYS_S:
        try:
            return transaction()
        except TransactionConflict:
            time.sleep(delay_s)
    return transaction()
