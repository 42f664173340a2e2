"""How often rows of a table without a key are in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import UnreadableVector
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeySet, find_rows
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import require_table, with_added_columns
from airflow_cdc_provider.targets.unsupported import Unsupported


def count_rows(
    store: Store, table: str, version: int | None, schema: TableSchema, added: Sequence[Column], rows: pa.Table
) -> Sequence[int]:
    """Per row of ``rows``, which are distinct. ``version`` must be the newest one; it lacks the columns ``added`` to
    ``schema``. Raises Unsupported."""
    snapshot = read_snapshot(store, table)
    if snapshot.version != version:
        raise Unsupported("another version of the table")
    require_table(with_added_columns(snapshot, added), schema, soft=False)
    try:
        matches = find_rows(store, table, snapshot, KeySet(rows, ordered=False))
    except UnreadableVector:
        raise Unsupported("deletion vectors of another writer") from None
    numbers = np.concatenate([match.numbers for match in matches]) if matches else np.empty(0, np.int64)
    return [int(count) for count in np.bincount(numbers, minlength=len(rows))]
