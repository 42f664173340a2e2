"""A merge: rows are looked up, marked and rewritten; then one commit with the token and the control record."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import DELETED, GONE, OP, ORDER, MergePlan
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
)

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
    if snapshot is None or not supports_table(snapshot, plan):
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
        return _Merge(store, table, snapshot, staged, plan, label).prepare(matches)
    except (UnreadableVector, pa.ArrowException):  # files of other writers may not cast to our types
        return None


def _has_repeated_keys(matches: Sequence[KeyMatches]) -> bool:
    numbers = np.concatenate([match.numbers for match in matches]) if matches else np.empty(0)
    return len(np.unique(numbers)) < len(numbers)


@dataclass(frozen=True)
class _MarkedRows:
    """Rows of a file that the merge marks deleted. The ``flagged`` ones are soft deletes by the staged rows ``by``:
    they are written again with the flag."""

    match: KeyMatches
    positions: Positions
    flagged: Positions
    by: Numbers


@dataclass(frozen=True)
class _Merge:
    store: Store
    table: str
    snapshot: TableSnapshot
    staged: pa.Table
    plan: MergePlan
    label: CommitLabel

    def prepare(self, matches: Sequence[KeyMatches]) -> PreparedCommit:
        is_delete = pc.equal(self.staged[OP], GONE).to_numpy()
        has_row = np.zeros(len(self.staged), bool)
        written = np.zeros(len(self.staged), bool)
        marked_rows, updated, deleted = list[_MarkedRows](), 0, 0
        for match in matches:
            has_row[match.numbers] = True
            newer = self._newer(match)
            deletes = newer & is_delete[match.numbers] & (self.plan.on_delete is not OnDelete.IGNORE)
            updates = newer & ~is_delete[match.numbers]
            written[match.numbers[updates]] = True
            flagged = deletes if self.plan.soft else np.zeros(len(deletes), bool)
            updated += int(updates.sum() + flagged.sum())
            deleted += int(deletes.sum() - flagged.sum())
            if (marked := deletes | updates).any():
                by = match.numbers[flagged]
                marked_rows.append(_MarkedRows(match, match.positions[marked], match.positions[flagged], by))
        inserted = ~has_row & ~is_delete
        actions = self._actions(marked_rows, written | inserted)
        counts = int(inserted.sum()), updated, deleted
        path = commit_path(self.table, self.snapshot.version + 1)
        return PreparedCommit(self.store, path, self._content(actions, *counts), *counts)

    def _newer(self, match: KeyMatches) -> np.typing.NDArray[np.bool_]:
        staged = self.staged[ORDER].take(pa.array(match.numbers))
        compare = pc.greater_equal if self.plan.not_older else pc.greater
        return compare(staged, match.orders).fill_null(False).to_numpy()  # type: ignore[no-any-return]

    def _actions(self, marked_rows: Sequence[_MarkedRows], written: Numbers) -> list[dict[str, Any]]:
        vectors = [np.union1d(rows.match.marked, rows.positions) for rows in marked_rows]
        keeps_rows = [
            len(vector) < (rows.match.file.rows or 0) for rows, vector in zip(marked_rows, vectors, strict=True)
        ]
        new_vectors = [vector for vector, keeps in zip(vectors, keeps_rows, strict=True) if keeps]
        descriptors = iter(write_vectors(self.store, self.table, new_vectors) if new_vectors else ())
        actions: list[dict[str, Any]] = []
        for rows, keeps in zip(marked_rows, keeps_rows, strict=True):
            actions.append({"remove": removal(rows.match.file)})
            if keeps:
                actions.append({"add": with_vector(dict(rows.match.file.add), next(descriptors))})
        new_rows = self._new_rows(marked_rows, written)
        if len(new_rows):
            statistics_columns = columns_with_statistics(self.snapshot.metadata)
            actions.append({"add": write_rows(self.store, self.table, new_rows, statistics_columns)})
        return actions

    def _new_rows(self, marked_rows: Sequence[_MarkedRows], written: Numbers) -> pa.Table:
        names = column_order(self.snapshot)
        staged = self.staged.filter(pa.array(written))
        if self.plan.soft:
            staged = staged.append_column(DELETED, pa.array(np.zeros(len(staged), bool)))
        staged = staged.select(names)
        parts = [staged, *(self._flagged(rows, staged.schema) for rows in marked_rows if len(rows.flagged))]
        return pa.concat_tables(parts).sort_by([(name, "ascending") for name in self.plan.schema.key])

    def _flagged(self, marked: _MarkedRows, columns: pa.Schema) -> pa.Table:
        """The old rows with the delete flag and the order key of the delete."""
        rows = pa.concat_tables(rows_at(self.store, self.table, marked.match.file, marked.flagged, columns))
        values = {DELETED: pa.array(np.ones(len(rows), bool)), ORDER: self.staged[ORDER].take(pa.array(marked.by))}
        for name, value in values.items():
            rows = rows.set_column(rows.schema.get_field_index(name), name, value)
        return rows

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
        lines = [{"commitInfo": info}, {"txn": token}, *actions]
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
