"""A merge: rows are looked up, marked and rewritten; then one commit with the token and the control record."""

from __future__ import annotations

import json

import pyarrow as pa

from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.own_rows import leading_columns
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.changes import Changes
from airflow_cdc_provider.targets.delta.local_engine.commit import (
    CommitLabel,
    PreparedCommit,
    StaleToken,
    commit_info,
    content_of,
)
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import UnreadableVector
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeySet, find_rows
from airflow_cdc_provider.targets.delta.local_engine.keyed_merge import KeyedMerge
from airflow_cdc_provider.targets.delta.local_engine.keyless_merge import KeylessMerge, deleted_rows
from airflow_cdc_provider.targets.delta.local_engine.log_replay import TableSnapshot, commit_path, read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import (
    require_plan,
    require_table,
    require_writable,
    with_added_columns,
)
from airflow_cdc_provider.targets.needs_spark import NeedsSpark


def prepare_merge(store: Store, table: str, staged: pa.Table, plan: MergePlan, label: CommitLabel) -> PreparedCommit:
    """``store``: the target's location; ``staged``: rows as ``core.table.merge_plan`` defines them. Raises NeedsSpark,
    StaleToken, and errors of reading the table; nothing is written then."""
    require_plan(plan)
    snapshot = read_snapshot(store, table)
    require_writable(snapshot)
    extended = with_added_columns(snapshot, plan.added)
    require_table(extended, plan.schema, plan.soft)
    if snapshot.tokens.get(label.app_id, -1) >= label.token:
        raise StaleToken
    try:
        changes = _changes(store, table, extended, staged, plan)
    except UnreadableVector:
        raise NeedsSpark("deletion vectors of another writer") from None
    schema = [{"metaData": extended.metadata}] if plan.added else []
    info = commit_info("MERGE", {"predicate": json.dumps(plan.schema.key)}, changes.metrics, snapshot.version, label)
    content = content_of(info, label, [*schema, *changes.actions])
    path = commit_path(table, snapshot.version + 1)
    return PreparedCommit(store, path, content, changes.inserted, changes.updated, changes.deleted)


def _changes(store: Store, table: str, snapshot: TableSnapshot, staged: pa.Table, plan: MergePlan) -> Changes:
    if not plan.schema.key:
        matches = find_rows(store, table, snapshot, KeySet(deleted_rows(staged, plan), ordered=False))
        return KeylessMerge(store, table, snapshot, staged, plan).changes(matches)
    keys = KeySet(staged.select(list(plan.schema.key)), leading=len(leading_columns(plan.schema)))
    matches = find_rows(store, table, snapshot, keys)
    return KeyedMerge(store, table, snapshot, staged, plan).changes(matches)
