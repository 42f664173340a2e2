"""Rows of a table, found by their keys or their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.own_rows import leading_columns
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import UnreadableVector
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches, KeySet, find_rows, rows_at
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import require_table, with_added_columns
from airflow_cdc_provider.targets.exact_values import Numbers
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.target import RowsRead


def count_rows(store: Store, table: str, read: RowsRead, rows: pa.Table) -> Sequence[int]:
    """As ``ReadsRows.count_rows``."""
    matches = _matches(store, table, read, KeySet(rows, ordered=False))
    return [int(count) for count in np.bincount(_numbers(matches), minlength=len(rows))]


def live_rows_of(
    store: Store, table: str, read: RowsRead, keys: pa.Table, columns: pa.Schema
) -> tuple[Numbers, pa.Table]:
    """As ``ReadsRows.live_rows``."""
    matches = _matches(store, table, read, KeySet(keys, leading=len(leading_columns(read.schema))))
    if read.soft:
        columns = columns.append(pa.field(DELETED, pa.bool_()))
    parts = [part for one in matches for part in rows_at(store, table, one.file, one.positions, columns)]
    numbers, rows = _numbers(matches), pa.concat_tables([columns.empty_table(), *parts])
    if not read.soft:
        return numbers, rows
    live = ~rows[DELETED].fill_null(False).to_numpy()
    return numbers[live], rows.filter(pa.array(live)).drop_columns(DELETED)


def _matches(store: Store, table: str, read: RowsRead, keys: KeySet) -> Sequence[KeyMatches]:
    snapshot = read_snapshot(store, table)
    if snapshot.version != read.version:
        raise NeedsSpark("another version of the table")
    require_table(with_added_columns(snapshot, read.added), read.schema, read.soft)
    try:
        return find_rows(store, table, snapshot, keys)
    except UnreadableVector:
        raise NeedsSpark("deletion vectors of another writer") from None


def _numbers(matches: Sequence[KeyMatches]) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *(match.numbers for match in matches)])
