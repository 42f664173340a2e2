"""Commits to an Iceberg table by pyiceberg, as a compare-and-set on the table and its current snapshot.

Fences and published branches tag the snapshot with the newest record: expiring snapshots keeps tagged ones, so the
cursor survives any maintenance. Each commit also drops the branches of other attempts: they start from snapshots that
are no longer current, so they can never be published. In a table that several copies share, each copy has a tag of its
own, and drops branches of its own attempts only: those of other copies are cut again by their owners.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.iceberg.alterations import alter_column
from airflow_cdc_provider.targets.iceberg.record_properties import snapshot_properties, table_properties

MAIN = "main"
CURSOR_TAG = "cdc_cursor"
BRANCH_PREFIX = "cdc_attempt_"


def branch_name(record: ControlRecord) -> str:
    return f"{_branch_prefix(record)}{record.nonce}"


def _branch_prefix(record: ControlRecord) -> str:
    return f"{BRANCH_PREFIX}{_own_part(record)}"


def _cursor_tag(record: ControlRecord) -> str:
    return f"{CURSOR_TAG}_{_own_part(record)}".rstrip("_")


def _own_part(record: ControlRecord) -> str:
    """Distinguishes the copies in one table; empty if there is one."""
    return f"{hashlib.sha256(record.table.encode()).hexdigest()[:12]}_" if record.shared else ""


def append_empty_snapshot(catalog: Any, table: Any, record: ControlRecord, restored: bool) -> None:
    """Commit a snapshot with ``record`` and without data on top of the loaded snapshot of ``table``. Raises the
    library's CommitFailedException if the table has changed. ``restored``: others took the table back to that snapshot,
    and it gets the columns of then."""
    transaction = table.transaction()
    if restored:
        transaction._apply(_columns_of(table, table.metadata.current_snapshot_id), ())
    added, head = _empty_snapshot(transaction, MAIN, record)
    _commit(catalog, table, record, head, (*transaction._updates, *added))


def alter_columns(catalog: Any, table: Any, record: ControlRecord, alterations: Sequence[Alteration]) -> None:
    """As ``append_empty_snapshot``, with alterations of columns in the same commit. Names of columns differ in more
    than case: a column may live in a former one of another case."""
    transaction = table.transaction()
    for one in alterations:
        emptied = (
            table.schema().find_field(one.column.name, case_sensitive=False) if one.kind is Alter.SET_NULL else None
        )
        with transaction.update_schema(allow_incompatible_changes=True, case_sensitive=False) as update:
            alter_column(update, one)
        if emptied is not None:  # under the same name, with a new id: without values
            with transaction.update_schema() as update:
                update.add_column((emptied.name,), emptied.field_type)
    added, head = _empty_snapshot(transaction, MAIN, record)
    _commit(catalog, table, record, head, (*transaction._updates, *added))


def publish(catalog: Any, table: Any, record: ControlRecord, columns: Mapping[str, str | None]) -> None:
    """Make the head of the record's own branch current if ``table`` is still as loaded.

    ``columns``: columns to drop (None) or to rename (to that name) in the same commit. A snapshot without data is then
    added on top, so that reading this version shows the new columns.
    """
    branch = branch_name(record)
    if not columns:
        _commit(catalog, table, record, table.snapshot_by_name(branch).snapshot_id, (), branch)
        return
    transaction = table.transaction()
    with transaction.update_schema(allow_incompatible_changes=True) as update:
        for name, new_name in columns.items():
            if new_name is None:
                update.delete_column((name,))
    with transaction.update_schema() as update:
        for name, new_name in columns.items():
            if new_name is not None:
                update.rename_column((name,), new_name)
    added, head = _empty_snapshot(transaction, branch, record)
    _commit(catalog, table, record, head, (*transaction._updates, *added), branch)


def restore_version(catalog: Any, table: Any, version: int) -> None:
    """Make an older snapshot current again, with its columns, if ``table`` is still as loaded."""
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

    catalog.commit_table(
        table,
        _as_loaded(table),
        (
            *_columns_of(table, version),
            SetSnapshotRefUpdate(ref_name=MAIN, type=SnapshotRefType.BRANCH, snapshot_id=version),
            *(RemoveSnapshotRefUpdate(ref_name=name) for name in _attempts(table, BRANCH_PREFIX)),
        ),
    )


def _columns_of(table: Any, version: int) -> tuple[Any, ...]:
    """The update that gives the table the columns of a snapshot: a ref alone leaves it the newest ones."""
    from pyiceberg.table.update import SetCurrentSchemaUpdate

    number = table.snapshot_by_id(version).schema_id
    return () if number in (None, table.metadata.current_schema_id) else (SetCurrentSchemaUpdate(schema_id=number),)


def _empty_snapshot(transaction: Any, branch: str, record: ControlRecord) -> tuple[tuple[Any, ...], int]:
    """The update that adds the snapshot, and its id. Not by the library's own append, which would be retried on top of
    other commits."""
    append = transaction.update_snapshot(snapshot_properties=snapshot_properties(record), branch=branch).fast_append()
    updates, _ = append._commit()
    return updates[:1], append.snapshot_id


def _commit(
    catalog: Any, table: Any, record: ControlRecord, head: int, updates: Iterable[Any], branch: str = MAIN
) -> None:
    """``branch`` must also be as loaded: after a restore, the snapshot that a much older attempt started from may be
    current again."""
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetPropertiesUpdate, SetSnapshotRefUpdate

    properties = table.metadata.properties
    new = {name: text for name, text in table_properties(record).items() if name not in properties}
    catalog.commit_table(
        table,
        _as_loaded(table, branch),
        (
            *updates,
            SetSnapshotRefUpdate(ref_name=MAIN, type=SnapshotRefType.BRANCH, snapshot_id=head),
            SetSnapshotRefUpdate(ref_name=_cursor_tag(record), type=SnapshotRefType.TAG, snapshot_id=head),
            *(RemoveSnapshotRefUpdate(ref_name=name) for name in _attempts(table, _branch_prefix(record))),
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


def _attempts(table: Any, prefix: str) -> list[str]:
    return [name for name in table.metadata.refs if name.startswith(prefix)]
