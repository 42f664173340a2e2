"""Rows that moved to another key without all their columns: the target rows that they moved away from have the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import KNOWN, NO_ROW
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.exact_values import Numbers
from spark_jobs.folds.lives import FoldError

LiveRows = Callable[[Sequence[str]], tuple[Numbers, pa.Table]]
"""Live rows of the target by their canonical keys, and the index of the key of each."""


def with_parents(rows: pa.Table, folded: pa.Table, schema: TableSchema, live: LiveRows) -> pa.Table:
    """``rows`` are the folded rows (``fold.ROWS``) with typed columns. Where ``root`` is the key of the target row that
    has the values which are not known, all values are known then. If that row does not exist, they are NULL where it
    may be missing; otherwise FoldError is raised."""
    roots = folded["root"].combine_chunks()
    keys = roots.unique().drop_null()
    numbers, parents = live(keys.to_pylist())
    parent_of_key = np.full(len(keys), -1)
    parent_of_key[numbers] = np.arange(len(numbers))
    moved = roots.is_valid().to_numpy(zero_copy_only=False)
    parent = np.full(len(rows), -1)
    parent[moved] = parent_of_key[pc.index_in(roots.drop_null(), value_set=keys).to_numpy()]
    known = [{*schema.key, *(names or schema.names)} for names in folded["known"].to_pylist()]
    lacking = {name: moved & np.array([name not in names for names in known], bool) for name in schema.names}
    required = (parent < 0) & ~folded["root_may_be_missing"].to_numpy()
    if any((lacks & required).any() for lacks in lacking.values()):
        raise FoldError(NO_ROW)
    at = pa.array(parent, mask=parent < 0)
    for name, lacks in lacking.items():
        values = pc.if_else(pa.array(lacks), parents[name].take(at), rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, values)
    everything = pa.nulls(len(rows), rows[KNOWN].type)
    known_now = pc.if_else(pa.array(moved), everything, rows[KNOWN])
    return rows.set_column(rows.column_names.index(KNOWN), KNOWN, known_now)
