"""The fold of a source that delivers out of order, on Arrow tables. Its rules are those of ``unordered``: per key, the
change with the highest order key wins.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import CONFLICTING_CHANGES, NO_ROW
from spark_jobs.folds.duplicates import have_conflicts
from spark_jobs.folds.key_groups import Numbers, entry_keys
from spark_jobs.folds.lives import FoldError

DELETE = Operation.DELETE.value


def newest_changes(entries: pa.Table) -> pa.Table:
    """One entry per key. ``entries``: changes, and carried tombstones, which have a ``kind``. Of two equal entries the
    carried one counts, which has been applied. Raises FoldError where an entry has no key, or where two different
    changes have one order key."""
    keys = entry_keys(entries)
    if keys.null_count:
        raise FoldError(NO_ROW)
    codes: Numbers = keys.dictionary_encode().indices.to_numpy()
    order = pa.table([entries["order_key"], pc.is_valid(entries["kind"])], ["order", "carried"])
    ascending = pc.sort_indices(order, [("order", "ascending"), ("carried", "ascending")]).to_numpy()
    last = np.zeros(codes.max(initial=-1) + 1, np.int64)
    np.maximum.at(last, codes[ascending], np.arange(len(ascending)))
    newest = ascending[last]
    rivals = entries["order_key"].take(pa.array(newest[codes]))
    same = pc.equal(entries["order_key"], rivals)
    others = pa.array(np.arange(len(codes))).filter(same.combine_chunks())
    some = entries.select(["op", "after"])
    if have_conflicts(some.take(others), some.take(pa.array(newest[codes]).take(others))):
        raise FoldError(CONFLICTING_CHANGES)
    return entries.take(pa.array(newest))


def tombstones(newest: pa.Table, retired: str, now: str) -> pa.Table:
    """Of the newest changes the deletes above the order key ``retired``. ``now``: ISO time of new ones."""
    deleted = newest.filter(pc.and_(pc.equal(newest["op"], DELETE), pc.greater(newest["order_key"], retired)))
    kinds = pa.array([Carried.TOMBSTONE.value] * len(deleted), pa.string())
    since = pc.if_else(pc.is_valid(deleted["kind"]), deleted["since"], now)
    return deleted.set_column(deleted.column_names.index("kind"), "kind", kinds).set_column(
        deleted.column_names.index("since"), "since", since
    )
