"""The files with the rows of one copy, in a table that other copies share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.changes import Action, marks
from airflow_cdc_provider.targets.delta.local_engine.commit import (
    CommitLabel,
    PreparedCommit,
    StaleToken,
    commit_info,
    content_of,
    removal,
)
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import UnreadableVector
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches, KeySet, find_rows
from airflow_cdc_provider.targets.delta.local_engine.log_replay import (
    ActiveFile,
    TableSnapshot,
    commit_path,
    live_rows,
    read_snapshot,
)
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import name_in_files, require_writable
from airflow_cdc_provider.targets.delta.local_engine.restore import require_files
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

WHOLE_TEXTS = 32
"""Longer texts may be cut in the statistics of a file."""


@dataclass(frozen=True)
class OwnFiles:
    """``whole``: all of their rows belong to the copy. ``mixed``: some may, as after a compaction."""

    whole: tuple[ActiveFile, ...]
    mixed: tuple[ActiveFile, ...]


def own_files(files: Iterable[ActiveFile], own: OwnRows) -> OwnFiles:
    kinds = [(file, is_own(file, own)) for file in files]
    return OwnFiles(tuple(file for file, kind in kinds if kind), tuple(file for file, kind in kinds if kind is None))


def is_own(file: ActiveFile, own: OwnRows) -> bool | None:
    """Whether its rows belong to the copy, by its statistics. None if some may, or if that is unknown."""
    low, high = (_bound(file.stats.get(name), own) for name in ("minValues", "maxValues"))
    if low is None or high is None:
        return None
    if not low <= own.value <= high:
        return False
    return True if low == high == own.value and len(own.value) <= WHOLE_TEXTS else None


def count_own(store: Store, table: str, own: OwnRows) -> int:
    """The live rows of the copy. Reads one column of mixed files. Raises NeedsSpark."""
    snapshot = read_snapshot(store, table)
    own = replace(own, column=replace(own.column, name=name_in_files(snapshot.metadata, own.column.name)))
    files = own_files(snapshot.files, own)
    in_mixed = sum(len(match.positions) for match in _rows_in(store, table, snapshot, files.mixed, own))
    return live_rows(replace(snapshot, files=files.whole)) + in_mixed


def restored_own(store: Store, table: str, own: OwnRows, version: int, label: CommitLabel) -> PreparedCommit | None:
    """A commit that gives the copy the rows of an earlier version, and leaves those of the others. None if it has them
    already. ``label``: of the commit that is in force. Raises StaleToken if another one is, and NeedsSpark."""
    snapshot = read_snapshot(store, table, limit=None)
    require_writable(snapshot)
    if snapshot.tokens.get(label.app_id) != label.token:
        raise StaleToken
    before = own_files(read_snapshot(store, table, version).files, own)
    if before.mixed:
        raise NeedsSpark("files with rows of several source tables")
    now = own_files(snapshot.files, own)
    kept = {_identity(file) for file in before.whole} & {_identity(file) for file in now.whole}
    matches = _rows_in(store, table, snapshot, now.mixed, own)
    actions: list[Action] = [*marks(store, table, [(match, match.positions) for match in matches])]
    actions += [{"remove": removal(file)} for file in now.whole if _identity(file) not in kept]
    returned = [file for file in before.whole if _identity(file) not in kept]
    require_files(store, table, returned)
    actions += [{"add": {**file.add, "dataChange": True}} for file in returned]
    if not actions:
        return None
    info = commit_info("WRITE", {"restoredTo": str(version)}, {}, snapshot.version, label)
    path = commit_path(table, snapshot.version + 1)
    return PreparedCommit(store, path, content_of(info, label, actions), 0, 0, 0)


def _rows_in(
    store: Store, table: str, snapshot: TableSnapshot, files: tuple[ActiveFile, ...], own: OwnRows
) -> Sequence[KeyMatches]:
    keys = KeySet(pa.table({own.column.name: [own.value]}), ordered=False)
    try:
        return find_rows(store, table, replace(snapshot, files=files), keys)
    except UnreadableVector:
        raise NeedsSpark("deletion vectors of another writer") from None


def _identity(file: ActiveFile) -> tuple[str, str]:
    return file.path, str(sorted((file.vector or {}).items()))


def _bound(values: Mapping[str, str] | None, own: OwnRows) -> str | None:
    return (values or {}).get(own.column.name)
