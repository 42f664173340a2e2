"""Duplicates: changes that a source delivers again. Pure.

A duplicate arrives at another position in the stream, maybe much later, with the same ``event_id``. An update that is
applied again over newer data would revert the row, so ids are remembered for as long as the source may repeat them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from airflow_cdc_provider.connectors.source import Ignored, StreamItem
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord


def drop_duplicates(items: Iterable[StreamItem], seen: Container[str]) -> Iterator[StreamItem]:
    """The items without row changes whose id is in ``seen`` or precedes among the items; each is counted as ignored. A
    repeated overflow or gap is kept: it costs a fetch, and never data."""
    current: set[str] = set()
    for item in items:
        if isinstance(item, ChangeRecord) and item.op not in CONTROL_OPERATIONS:
            if item.event_id in seen or item.event_id in current:
                yield Ignored(1)
                continue
            current.add(item.event_id)
        yield item
