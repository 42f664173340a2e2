"""Which changes of a polled table its timestamps show after all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from airflow_cdc_provider.core.table.identity import TableIdentity, UnseenChanges


def as_polled(
    changes: UnseenChanges,
    now: TableIdentity,
    is_filled: Callable[[str], bool],
    holds_rows: Callable[[str], bool],
) -> UnseenChanges:
    """What is left of ``changes``. ``is_filled``: whether a row that no interval will show again holds a value in the
    column; ``holds_rows``: whether the partition, by its oid, holds such a row.

    Deleted rows are a matter of the key audit, also where a partition takes them along. A rewrite keeps every value
    unless the statement set those of a column."""
    return replace(
        changes,
        rows=(*changes.rows, *_found(changes, now, is_filled, holds_rows)),
        attached=(),
        detached=(),
        added=(),
        rewritten=False,
    )


def _found(
    changes: UnseenChanges, now: TableIdentity, is_filled: Callable[[str], bool], holds_rows: Callable[[str], bool]
) -> Iterator[str]:
    if changes.recomputed:
        yield "the table was rewritten by a statement that may have set the values of a column"
    for name in changes.added:
        if is_filled(name):
            yield f"rows older than column {name} hold values in it"
    for key in changes.attached:
        if holds_rows(key.partition("@")[0]):
            yield f"partition {now.partitions[key].name} was attached with rows in it"
