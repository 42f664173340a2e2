"""A merge: rows are looked up, marked and rewritten; then one commit with the token and the control record."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import DELETED, GONE, KNOWN, LIVE, OP, ORDER, MergePlan
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.data_file import with_vector, write_rows
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import Positions, UnreadableVector, write_vectors
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches, KeySet, Numbers, rows_at
from airflow_cdc_provider.targets.delta.local_engine.log_replay import (
    ActiveFile,
    TableSnapshot,
    commit_path,
    read_snapshot,
)
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import (
    column_order,
    columns_with_statistics,
    supports_plan,
    supports_table,
    supports_writes,
    with_added_columns,
)

Mask = npt.NDArray[np.bool_]

MAX_ROWS = 4_000_000
"""Limit for the rows in files whose keys are looked up: above it, Spark's parallel tasks are faster."""

READERS = 8
"""Threads that look up keys: there are many files, and object stores have a high latency."""


@dataclass(frozen=True)
class CommitLabel:
    """What a commit records besides its data: ``text`` is the control record."""

    app_id: str
    token: int
    text: str


@dataclass(frozen=True)
class PreparedCommit:
    """A commit on top of the version that was read. Rows ``updated`` include soft-deleted ones."""

    store: Store
    path: str
    content: bytes
    inserted: int
    updated: int
    deleted: int

    def commit(self) -> bool:
        """False if another commit came first."""
        return self.store.create(self.path, self.content) or self.store.read(self.path) == self.content


class StaleToken(Exception):
    """The table has a commit with this token or a higher one."""


def prepare_merge(
    store: Store, table: str, staged: pa.Table, plan: MergePlan, label: CommitLabel
) -> PreparedCommit | None:
    """None if the table or the batch is not supported; nothing is written then. ``store``: the target's location;
    ``staged``: rows as ``core.table.merge_plan`` defines them. Raises StaleToken, and errors of reading the table."""
    if not supports_plan(plan):
        return None
    snapshot = read_snapshot(store, table)
    if snapshot is None or not supports_writes(snapshot):
        return None
    extended = with_added_columns(snapshot, plan)
    if extended is None or not supports_table(extended, plan):
        return None
    if snapshot.tokens.get(label.app_id, -1) >= label.token:
        raise StaleToken
    keys = KeySet(staged.select(list(plan.schema.key)))
    candidates = [file for file in snapshot.files if len(staged) and keys.may_be_in(file)]
    if sum(file.rows or 0 for file in candidates) > MAX_ROWS:
        return None
    try:
        with ThreadPoolExecutor(READERS, thread_name_prefix="lookup") as pool:
            lookups = pool.map(partial(keys.matches, store, table), candidates)
            matches = [match for match in lookups if match is not None]
        if _has_repeated_keys(matches):
            return None
        return _Merge(store, table, extended, staged, plan, label).prepare(matches)
    except (UnreadableVector, pa.ArrowException):  # files of other writers may not cast to our types
        return None


def _has_repeated_keys(matches: Sequence[KeyMatches]) -> bool:
    numbers = np.concatenate([match.numbers for match in matches]) if matches else np.empty(0)
    return len(np.unique(numbers)) < len(numbers)


@dataclass(frozen=True)
class _MarkedRows:
    """Rows of a file that the merge marks deleted. The ``kept`` ones are written again, with the changes of the staged
    rows ``by``: soft deletes, and updates that do not know all values."""

    match: KeyMatches
    positions: Positions
    kept: Positions
    by: Numbers


@dataclass(frozen=True)
class _Merge:
    store: Store
    table: str
    snapshot: TableSnapshot
    staged: pa.Table
    plan: MergePlan
    label: CommitLabel

    def prepare(self, matches: Sequence[KeyMatches]) -> PreparedCommit | None:
        """None if a row is missing that must exist, which Spark reports, or if a row is newer than a truncate."""
        is_delete, is_partial = self._is_delete, self._is_partial
        has_row = np.zeros(len(self.staged), bool)
        written = np.zeros(len(self.staged), bool)
        marked_rows, updated, deleted = list[_MarkedRows](), 0, 0
        for match in matches:
            has_row[match.numbers] = True
            newer = self._newer(match)
            if self.plan.truncated and not newer.all():
                return None
            deletes = newer & is_delete[match.numbers] & (self.plan.on_delete is not OnDelete.IGNORE)
            updates = newer & ~is_delete[match.numbers]
            rewritten = updates & is_partial[match.numbers]
            written[match.numbers[updates & ~rewritten]] = True
            flagged = deletes if self.plan.soft else np.zeros(len(deletes), bool)
            updated += int(updates.sum() + flagged.sum())
            deleted += int(deletes.sum() - flagged.sum())
            kept = flagged | rewritten
            if (marked := deletes | updates).any():
                marked_rows.append(
                    _MarkedRows(match, match.positions[marked], match.positions[kept], match.numbers[kept])
                )
        inserted = ~has_row & ~is_delete
        if (inserted & is_partial & self._requires_row).any():
            return None
        rewritten_rows = self._rewritten_rows(marked_rows)
        if rewritten_rows is None:
            return None
        if self.plan.truncated:
            return self._replaced(written | inserted, updated, int(inserted.sum()), rewritten_rows)
        actions = [*self._marks(marked_rows), *self._added(written | inserted, rewritten_rows)]
        return self._commit(actions, int(inserted.sum()), updated, deleted)

    @cached_property
    def _is_delete(self) -> Mask:
        return pc.equal(self.staged[OP], GONE).to_numpy()  # type: ignore[no-any-return]

    @cached_property
    def _is_partial(self) -> Mask:
        """Rows that live and lack values."""
        if not self.plan.partial:
            return np.zeros(len(self.staged), bool)
        return pc.is_valid(self.staged[KNOWN]).to_numpy() & ~self._is_delete  # type: ignore[no-any-return]

    @cached_property
    def _requires_row(self) -> Mask:
        return pc.equal(self.staged[OP], LIVE).to_numpy()  # type: ignore[no-any-return]

    def _newer(self, match: KeyMatches) -> Mask:
        staged = self.staged[ORDER].take(pa.array(match.numbers))
        compare = pc.greater_equal if self.plan.not_older else pc.greater
        return compare(staged, match.orders).fill_null(False).to_numpy()  # type: ignore[no-any-return]

    def _replaced(
        self, written: Mask, updated: int, inserted: int, rewritten: Sequence[pa.Table]
    ) -> PreparedCommit | None:
        """Behind a truncate no older row is left."""
        live = [file.live_rows for file in self.snapshot.files]
        if None in live or rewritten:
            return None
        actions = [{"remove": removal(file)} for file in self.snapshot.files]
        deleted = sum(rows or 0 for rows in live) - updated
        return self._commit([*actions, *self._added(written, ())], inserted, updated, deleted)

    def _marks(self, marked_rows: Sequence[_MarkedRows]) -> Iterator[dict[str, Any]]:
        vectors = [np.union1d(rows.match.marked, rows.positions) for rows in marked_rows]
        keeps_rows = [
            len(vector) < (rows.match.file.rows or 0) for rows, vector in zip(marked_rows, vectors, strict=True)
        ]
        new_vectors = [vector for vector, keeps in zip(vectors, keeps_rows, strict=True) if keeps]
        descriptors = iter(write_vectors(self.store, self.table, new_vectors) if new_vectors else ())
        for rows, keeps in zip(marked_rows, keeps_rows, strict=True):
            yield {"remove": removal(rows.match.file)}
            if keeps:
                yield {"add": with_vector(dict(rows.match.file.add), next(descriptors))}

    def _added(self, written: Mask, rewritten: Sequence[pa.Table]) -> Iterator[dict[str, Any]]:
        staged = self._in_table_columns(self.staged.filter(pa.array(written)), np.zeros(int(written.sum()), bool))
        keys = [(name, "ascending") for name in self.plan.schema.key]
        rows = pa.concat_tables([staged, *rewritten]).sort_by(keys)
        if len(rows):
            yield {"add": write_rows(self.store, self.table, rows, columns_with_statistics(self.snapshot.metadata))}

    def _in_table_columns(self, rows: pa.Table, flags: Mask) -> pa.Table:
        if self.plan.soft:
            rows = rows.append_column(DELETED, pa.array(flags))
        return rows.select(column_order(self.snapshot))

    def _rewritten_rows(self, marked_rows: Sequence[_MarkedRows]) -> list[pa.Table] | None:
        """None if a soft-deleted row gets a change that requires a live one."""
        columns = self._in_table_columns(self.staged.slice(0, 0), np.zeros(0, bool)).schema
        tables = list[pa.Table]()
        for rows in marked_rows:
            if len(rows.kept):
                old = pa.concat_tables(rows_at(self.store, self.table, rows.match.file, rows.kept, columns))
                new = self._changed(old, rows.by)
                if new is None:
                    return None
                tables.append(new)
        return tables

    def _changed(self, old: pa.Table, by: Numbers) -> pa.Table | None:
        """Old rows with the known values of staged rows. A soft-deleted row that comes back keeps none of its own."""
        staged, gone = self.staged.take(pa.array(by)), self._is_delete[by]
        revived = np.zeros(len(by), bool)
        if self.plan.soft:
            revived = old[DELETED].fill_null(False).to_numpy() & ~gone
            if (revived & self._requires_row[by]).any():
                return None
        columns = dict[str, pa.ChunkedArray]()
        for name in self.plan.schema.names:
            kept = pc.if_else(pa.array(revived), pa.scalar(None, old.schema.field(name).type), old[name])
            columns[name] = pc.if_else(pa.array(self._has_value(name, by)), staged[name], kept)
        columns[ORDER] = staged[ORDER]
        return self._in_table_columns(pa.table(columns), gone)

    def _has_value(self, name: str, by: Numbers) -> Mask:
        """Which of the staged rows have a value for a column. Without ``_cdc_known`` a delete has only its key."""
        if name in self.plan.schema.key:
            return np.ones(len(by), bool)
        if not self.plan.partial:
            return ~self._is_delete[by]
        known = self.staged[KNOWN].take(pa.array(by)).to_pylist()
        return np.array([names is None or name in names for names in known], bool)

    def _commit(self, actions: Sequence[dict[str, Any]], inserted: int, updated: int, deleted: int) -> PreparedCommit:
        content = self._content(actions, inserted, updated, deleted)
        path = commit_path(self.table, self.snapshot.version + 1)
        return PreparedCommit(self.store, path, content, inserted, updated, deleted)

    def _content(self, actions: Sequence[dict[str, Any]], inserted: int, updated: int, deleted: int) -> bytes:
        metrics = {
            "numSourceRows": len(self.staged),
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetFilesAdded": sum("add" in action for action in actions),
            "numTargetFilesRemoved": sum("remove" in action for action in actions),
        }
        parameters = {"predicate": json.dumps(self.plan.schema.key)}
        info = commit_info("MERGE", parameters, metrics, self.snapshot.version, self.label)
        token = {"appId": self.label.app_id, "version": self.label.token, "lastUpdated": info["timestamp"]}
        schema = [{"metaData": self.snapshot.metadata}] if self.plan.added else []
        lines = [{"commitInfo": info}, {"txn": token}, *schema, *actions]
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def commit_info(
    operation: str, parameters: Mapping[str, str], metrics: Mapping[str, int], read_version: int, label: CommitLabel
) -> dict[str, Any]:
    info = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": operation,
        "operationParameters": parameters,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {name: str(number) for name, number in metrics.items()},
        "engineInfo": "airflow-cdc-provider",
        "txnId": str(uuid.uuid4()),
        "userMetadata": label.text,
    }
    return info | ({"readVersion": read_version} if read_version >= 0 else {})


def removal(file: ActiveFile) -> dict[str, Any]:
    copied = {
        name: file.add[name] for name in ("partitionValues", "size", "tags", "deletionVector") if name in file.add
    }
    removed = {"path": file.path, "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": True}
    return {**removed, "extendedFileMetadata": True, **copied}
