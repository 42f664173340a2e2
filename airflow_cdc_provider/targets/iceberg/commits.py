"""Commits to an Iceberg table by its library: conditional on the table and on its current snapshot, or not at all.

Both put a tag on the commit that carries the newest record. Expiring old snapshots spares what is tagged: the cursor
outlives any upkeep, ours or somebody else's. Both drop the branches of other attempts: those were cut from snapshots
that are no longer current, so they could not be published any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.iceberg.record_text import snapshot_properties, table_properties

MAIN = "main"
CURSOR_TAG = "cdc_cursor"
BRANCH_PREFIX = "cdc_attempt_"


def branch_name(record: ControlRecord) -> str:
    return f"{BRANCH_PREFIX}{record.nonce}"


def append_nothing(catalog: Any, table: Any, record: ControlRecord) -> None:
    """A snapshot without data that carries ``record``, on top of the one that ``table`` was loaded with. Raises the
    library's CommitFailedException where the table is not that any more."""
    added, head = _empty_snapshot(table.transaction(), MAIN, record)
    _commit(catalog, table, record, head, added)


def publish(catalog: Any, table: Any, record: ControlRecord, columns: Mapping[str, str | None]) -> None:
    """Make the head of the record's own branch current, where ``table`` still is what it was loaded as.

    ``columns``: columns to drop (None) and to rename (to that name) in the same commit; then a snapshot without data is
    put on top, so that who reads the version of this commit sees the new columns, too.
    """
    branch = branch_name(record)
    if not columns:
        _commit(catalog, table, record, table.snapshot_by_name(branch).snapshot_id, (), branch)
        return
    transaction = table.transaction()
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for name, becomes in columns.items():
            if becomes is None:
                update.delete_column((name,))
    with transaction.update_schema() as update:
        for name, becomes in columns.items():
            if becomes is not None:
                update.rename_column((name,), becomes)
    added, head = _empty_snapshot(transaction, branch, record)
    _commit(catalog, table, record, head, (*transaction._updates, *added), branch)


def restore_version(catalog: Any, table: Any, version: int) -> None:
    """Make an older snapshot current again, where ``table`` still is what it was loaded as."""
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

    catalog.commit_table(
        table,
        _as_loaded(table),
        (
            SetSnapshotRefUpdate(ref_name=MAIN, type=SnapshotRefType.BRANCH, snapshot_id=version),
            *(RemoveSnapshotRefUpdate(ref_name=name) for name in _attempts(table)),
        ),
    )


def _empty_snapshot(transaction: Any, branch: str, record: ControlRecord) -> tuple[tuple[Any, ...], int]:
    """The update that adds it, and its id. Staged by hand: the library's own append would be tried again on top of
    whatever has come in between."""
    append = transaction.update_snapshot(snapshot_properties=snapshot_properties(record), branch=branch).fast_append()
    updates, _ = append._commit()
    return updates[:1], append.snapshot_id


def _commit(
    catalog: Any, table: Any, record: ControlRecord, head: int, before: Iterable[Any], branch: str = MAIN
) -> None:
    """``branch`` must stand as it was loaded, too: taken back, a table may have the very snapshot current again that an
    attempt of long ago began at."""
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetPropertiesUpdate, SetSnapshotRefUpdate

    properties = table.metadata.properties
    new = {name: text for name, text in table_properties(record).items() if name not in properties}
    catalog.commit_table(
        table,
        _as_loaded(table, branch),
        (
            *before,
            SetSnapshotRefUpdate(ref_name=MAIN, type=SnapshotRefType.BRANCH, snapshot_id=head),
            SetSnapshotRefUpdate(ref_name=CURSOR_TAG, type=SnapshotRefType.TAG, snapshot_id=head),
            *(RemoveSnapshotRefUpdate(ref_name=name) for name in _attempts(table)),
            *([SetPropertiesUpdate(updates=new)] if new else []),
        ),
    )


def _as_loaded(table: Any, branch: str = MAIN) -> tuple[Any, ...]:
    from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

    metadata = table.metadata
    own = metadata.refs[branch].snapshot_id if branch in metadata.refs else None
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN, snapshot_id=metadata.current_snapshot_id),
        AssertRefSnapshotId(ref=branch, snapshot_id=own),
    )


def _attempts(table: Any) -> list[str]:
    return [name for name in table.metadata.refs if name.startswith(BRANCH_PREFIX)]
