"""Events that Salesforce published twice. Pure.

A repeat comes with a replay id of its own, maybe much later; what stays the same is its transaction, its place in it,
object, record and change type: the ``event_id`` of a change record. An update that is applied again over newer data
would take the row back, so ids are remembered for as long as Salesforce keeps events.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar

from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.changes import CONTROL_OPERATIONS, ChangeRecord

KEPT = timedelta(hours=72)

Item = TypeVar("Item")


def remembered(windows: Iterable[tuple[datetime, Iterable[str]]], now: datetime) -> frozenset[str]:
    """The event ids of windows that were sealed within the last 72 hours, given (sealed at, ids) of each."""
    return frozenset(event_id for sealed_at, ids in windows if now - sealed_at <= KEPT for event_id in ids)


def without_repeats(items: Iterable[Item | Ignored], seen: Container[str]) -> Iterator[Item | Ignored]:
    """The items without the changes of rows met before, in ``seen`` or among the items; each is counted as ignored. An
    overflow or gap is let through again: it costs a fetch, and never data."""
    here: set[str] = set()
    for item in items:
        if isinstance(item, ChangeRecord) and item.op not in CONTROL_OPERATIONS:
            if item.event_id in seen or item.event_id in here:
                yield Ignored(1)
                continue
            here.add(item.event_id)
        yield item
