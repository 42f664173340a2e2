"""One request to each target about its copies, to all targets at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from airflow_cdc_provider.core.table.copies import target_of_copy

T = TypeVar("T")
Answer = TypeVar("Answer")


def ask_each_target(
    items: Iterable[T], copy_of: Callable[[T], str], ask: Callable[[str, list[T]], Answer]
) -> list[Answer]:
    """The answers of the targets that have any of the items. ``copy_of``: the copy that an item is about. ``ask``: of
    the name of a target and its items."""
    by_target = defaultdict[str, list[T]](list)
    for item in items:
        by_target[target_of_copy(copy_of(item))].append(item)
    if not by_target:
        return []
    with ThreadPoolExecutor(len(by_target)) as pool:
        return list(pool.map(ask, by_target, by_target.values()))
