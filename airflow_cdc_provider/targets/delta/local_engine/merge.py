"""One merge: rows looked up, marked and written anew; then one commit of all that, with token and control record."""

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
    measured_columns,
    supports_plan,
    supports_table,
)

MOST_ROWS = 4_000_000
"""So many rows may stand in the files whose keys are looked at: above it, Spark's tasks share the work."""


READERS = 8
"""Files are many, and an object store answers slowly."""


@dataclass(frozen=True)
class Label:
    """What the commit says of itself: ``text`` is the control record."""

    app_id: str
    token: int
    text: str


@dataclass(frozen=True)
class Prepared:
    """All but the commit itself, which goes on top of the version that was looked at or not at all. Rows ``updated``
    include those that were flagged deleted."""

    store: Store
    path: str
    content: bytes
    inserted: int
    updated: int
    deleted: int

    def commit(self) -> bool:
        """False where another commit came first."""
        return self.store.create(self.path, self.content) or self.store.read(self.path) == self.content


class TokenPassed(Exception):
    """The table holds a commit with this token, or a higher one."""


def prepare(store: Store, table: str, staged: pa.Table, plan: MergePlan, label: Label) -> Prepared | None:
    """None where table or batch ask for more than is done here: then nothing was written. ``store``: the target's
    location; ``staged``: rows as ``core.merge`` says. Raises TokenPassed, and what reading the table raises."""
    if not supports_plan(plan):
        return None
    snapshot = read_snapshot(store, table)
    if snapshot is None or not supports_table(snapshot, plan):
        return None
    if snapshot.tokens.get(label.app_id, -1) >= label.token:
        raise TokenPassed
    wanted = KeySet(staged.select(list(plan.schema.key)))
    candidates = [file for file in snapshot.files if len(staged) and wanted.may_be_in(file)]
    if sum(file.rows or 0 for file in candidates) > MOST_ROWS:
        return None
    try:
        with ThreadPoolExecutor(READERS, thread_name_prefix="lookup") as pool:
            met = [found for found in pool.map(partial(wanted.matches, store, table), candidates) if found is not None]
        return None if _met_twice(met) else _Merge(store, table, snapshot, staged, plan, label).prepared(met)
    except (UnreadableVector, pa.ArrowException):  # files of other writers may hold what Arrow cannot take as ours
        return None


def _met_twice(met: Sequence[KeyMatches]) -> bool:
    numbers = np.concatenate([one.numbers for one in met]) if met else np.empty(0)
    return len(np.unique(numbers)) < len(numbers)


@dataclass(frozen=True)
class _Leaving:
    """Rows of a file that are marked now: ``flagged`` ones of them stay, with a mark of ours."""

    met: KeyMatches
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
    label: Label

    def prepared(self, met: Sequence[KeyMatches]) -> Prepared:
        gone = pc.equal(self.staged[OP], GONE).to_numpy()
        seen = np.zeros(len(self.staged), bool)
        written = np.zeros(len(self.staged), bool)
        leaving, updated, deleted = list[_Leaving](), 0, 0
        for one in met:
            seen[one.numbers] = True
            newer = self._newer(one)
            goes = newer & gone[one.numbers] & (self.plan.on_delete is not OnDelete.IGNORE)
            changes = newer & ~gone[one.numbers]
            written[one.numbers[changes]] = True
            flagged = goes if self.plan.soft else np.zeros(len(goes), bool)
            updated += int(changes.sum() + flagged.sum())
            deleted += int(goes.sum() - flagged.sum())
            if (leaves := goes | changes).any():
                by = one.numbers[flagged]
                leaving.append(_Leaving(one, one.positions[leaves], one.positions[flagged], by))
        inserted = ~seen & ~gone
        actions = self._actions(leaving, written | inserted)
        counts = int(inserted.sum()), updated, deleted
        path = commit_path(self.table, self.snapshot.version + 1)
        return Prepared(self.store, path, self._content(actions, *counts), *counts)

    def _newer(self, met: KeyMatches) -> np.typing.NDArray[np.bool_]:
        ours = self.staged[ORDER].take(pa.array(met.numbers))
        compare = pc.greater_equal if self.plan.not_older else pc.greater
        return compare(ours, met.orders).fill_null(False).to_numpy()  # type: ignore[no-any-return]

    def _actions(self, leaving: Sequence[_Leaving], written: Numbers) -> list[dict[str, Any]]:
        marked = [np.union1d(one.met.marked, one.positions) for one in leaving]
        kept = [len(rows) < (one.met.file.rows or 0) for one, rows in zip(leaving, marked, strict=True)]
        vectors = [rows for rows, stays in zip(marked, kept, strict=True) if stays]
        descriptors = iter(write_vectors(self.store, self.table, vectors) if vectors else ())
        actions: list[dict[str, Any]] = []
        for one, stays in zip(leaving, kept, strict=True):
            actions.append({"remove": removal(one.met.file)})
            if stays:
                actions.append({"add": with_vector(dict(one.met.file.add), next(descriptors))})
        rows = self._new_rows(leaving, written)
        if len(rows):
            actions.append({"add": write_rows(self.store, self.table, rows, measured_columns(self.snapshot.metadata))})
        return actions

    def _new_rows(self, leaving: Sequence[_Leaving], written: Numbers) -> pa.Table:
        names = column_order(self.snapshot)
        fresh = self.staged.filter(pa.array(written))
        if self.plan.soft:
            fresh = fresh.append_column(DELETED, pa.array(np.zeros(len(fresh), bool)))
        fresh = fresh.select(names)
        parts = [fresh, *(self._flagged(one, fresh.schema) for one in leaving if len(one.flagged))]
        return pa.concat_tables(parts).sort_by([(name, "ascending") for name in self.plan.schema.key])

    def _flagged(self, leaving: _Leaving, columns: pa.Schema) -> pa.Table:
        """The rows as they were, with the mark and the order key of what deleted them."""
        rows = pa.concat_tables(rows_at(self.store, self.table, leaving.met.file, leaving.flagged, columns))
        values = {DELETED: pa.array(np.ones(len(rows), bool)), ORDER: self.staged[ORDER].take(pa.array(leaving.by))}
        for name, value in values.items():
            rows = rows.set_column(rows.schema.get_field_index(name), name, value)
        return rows

    def _content(self, actions: Sequence[dict[str, Any]], inserted: int, updated: int, deleted: int) -> bytes:
        metrics = {
            "numSourceRows": len(self.staged),
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetFilesAdded": sum("add" in one for one in actions),
            "numTargetFilesRemoved": sum("remove" in one for one in actions),
        }
        parameters = {"predicate": json.dumps(self.plan.schema.key)}
        info = commit_info("MERGE", parameters, metrics, self.snapshot.version, self.label)
        token = {"appId": self.label.app_id, "version": self.label.token, "lastUpdated": info["timestamp"]}
        lines = [{"commitInfo": info}, {"txn": token}, *actions]
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def commit_info(
    operation: str, parameters: Mapping[str, str], metrics: Mapping[str, int], read_version: int, label: Label
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
    told = {name: file.add[name] for name in ("partitionValues", "size", "tags", "deletionVector") if name in file.add}
    removed = {"path": file.path, "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": True}
    return {**removed, "extendedFileMetadata": True, **told}
