"""Duplicates: changes that a source delivers again. Pure.

A duplicate arrives at another position in the stream, maybe much later, with the same ``event_id``. An update that is
applied again over newer data would revert the row, so ids are remembered for as long as the source may repeat them.
The ids of changes from before a table was followed are unknown. A change of that time is not applied: its row is
fetched.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from airflow_cdc_provider.connectors.source import Ignored, StreamItem
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation, canonical


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


def without_unrecognised(items: Iterable[StreamItem], followed_since: Mapping[str, datetime]) -> Iterator[StreamItem]:
    """The items, with a gap instead of each row change that may repeat one from before its table was followed."""
    for item in items:
        if isinstance(item, ChangeRecord) and item.op not in CONTROL_OPERATIONS and item.commit_ts is not None:
            since = followed_since.get(item.table)
            if since is not None and item.commit_ts <= since:
                item = _gap(item)
        yield item


def _gap(change: ChangeRecord) -> ChangeRecord:
    """``after`` has the operation: of a delete, the source may not know the row any more."""
    return replace(
        change,
        op=Operation.GAP,
        key=change.key or change.key_before,
        key_before=None,
        before=None,
        after=canonical({"op": change.op}),
        after_complete=False,
        refetch=(),
    )
