"""Find the changes of a polled table that its timestamps do not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from airflow_cdc_provider.core.table.identity import RECOMPUTED, TableIdentity, UnloggedChanges


def undetected_changes(
    changes: UnloggedChanges,
    now: TableIdentity,
    is_filled: Callable[[str], bool],
    holds_rows: Callable[[str], bool],
) -> UnloggedChanges:
    """The part of ``changes`` that no interval reads. ``is_filled``: whether a row before the next interval has a value
    in the column; ``holds_rows``: whether the partition, by its oid, has such a row.

    Deleted rows are found by the key audit, including those of a detached partition. A rewrite keeps every value unless
    the statement set those of a column."""
    return replace(
        changes,
        rows=(*changes.rows, *_row_changes(changes, now, is_filled, holds_rows)),
        attached=(),
        detached=(),
        added=(),
        rewritten=False,
    )


def _row_changes(
    changes: UnloggedChanges, now: TableIdentity, is_filled: Callable[[str], bool], holds_rows: Callable[[str], bool]
) -> Iterator[str]:
    if changes.recomputed:
        yield RECOMPUTED
    for name in changes.added:
        if is_filled(name):
            yield f"rows older than column {name} have values in it"
    for key in changes.attached:
        if holds_rows(key.partition("@")[0]):
            yield f"partition {now.partitions[key].name} was attached with rows in it"
