"""Change records by key: which entries belong to one key, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import NO_ROW
from spark_jobs.folds.lives import Entry, FoldError

TEXT = pa.string()
ENTRIES = pa.schema(
    [
        *(("op", TEXT), ("key_before", TEXT), ("key", TEXT), ("before", TEXT), ("after", TEXT)),
        *(("before_complete", pa.bool_()), ("after_complete", pa.bool_()), ("order_key", TEXT), ("phase", pa.int8())),
        *(("link_id", TEXT), ("tx_id", TEXT), ("row_id", TEXT), ("schema_id", TEXT)),
    ]
)
"""The columns of a change record that a fold reads."""

DELETE = Operation.DELETE.value
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class KeyGroups:
    """Entries by key. ``entries``: with the key as ``k``, in any order. ``codes``: the number of each entry's key;
    ``last``: the index of the last entry of each key. Raises FoldError where an entry has no key."""

    def __init__(self, entries: pa.Table) -> None:
        keys = entry_keys(entries)
        if keys.null_count:
            raise FoldError(NO_ROW)
        if "k" not in entries.column_names:
            entries = entries.append_column("k", keys)
        self.entries = entries
        self.codes: Numbers = keys.dictionary_encode().indices.to_numpy()
        self.last, self.counts = last_of_each(self.codes, entries["order_key"])

    @property
    def deleted(self) -> Mask:
        """Keys whose last entry is a delete."""
        gone: Mask = pc.equal(self.entries["op"].take(pa.array(self.last)), DELETE).to_numpy()
        return gone

    def any_of(self, entries: Mask) -> Mask:
        """The keys that one of these entries belongs to."""
        keys = np.zeros(len(self.last), bool)
        keys[self.codes[entries]] = True
        return keys

    def without_deletes(self, keys: Mask) -> tuple[KeyGroups, Mask]:
        """The entries of these keys without deletes, and all keys of them."""
        kept = keys[self.codes] & pc.not_equal(self.entries["op"], DELETE).to_numpy()
        groups = KeyGroups(self.entries.filter(pa.array(kept)))
        return groups, np.ones(len(groups.last), bool)

    def entries_of(self, keys: Mask) -> Iterator[Sequence[Entry]]:
        """The entries of each of these keys, in their order."""
        chosen = np.flatnonzero(keys[self.codes])
        entries = self.entries.take(pa.array(chosen))
        ranks = np.empty(len(chosen), np.int64)
        ranks[pc.sort_indices(entries["order_key"]).to_numpy()] = np.arange(len(chosen))
        in_order = np.lexsort((ranks, self.codes[chosen]))
        columns = (entries[name].take(pa.array(in_order)).to_pylist() for name in ("k", *Entry._fields[1:]))
        group = list[Entry]()
        for entry in map(Entry, *columns):
            if group and group[-1].key != entry.key:
                yield group
                group = []
            group.append(entry)
        if group:
            yield group


def entry_keys(records: pa.Table) -> pa.Array:
    """The key that each record is an entry of: of a delete the key before it."""
    gone = pc.equal(records["op"], DELETE)
    keys = pc.if_else(gone, records["key_before"], records["key"])
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def last_of_each(codes: Numbers, order: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """The index of the last entry of each key, and how many entries the key has."""
    counts = np.bincount(codes)
    in_order = pc.sort_indices(order).to_numpy()
    latest = np.zeros(len(counts), np.int64)
    np.maximum.at(latest, codes[in_order], np.arange(len(codes)))
    return in_order[latest], counts
