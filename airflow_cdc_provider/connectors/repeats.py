"""Changes that a source tells twice. Pure.

A repeat comes at another place in the stream, maybe much later; what stays the same is the ``event_id`` of its record.
An update that is applied again over newer data would take the row back, so ids are remembered for as long as the source
may come back to them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from airflow_cdc_provider.connectors.source import Ignored, StreamItem
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord


def without_repeats(items: Iterable[StreamItem], seen: Container[str]) -> Iterator[StreamItem]:
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
