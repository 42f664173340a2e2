"""What the changes that a copy has applied mean for late changes of the same rows. Pure; works on Arrow tables.

| of the same key, the copy has applied | a late change |
|---|---|
| the same change | is a repetition |
| a later delete, truncate, or change with all columns | is superseded |
| a later change without all columns, or one of the quarantine | cannot be applied: values of the row may be its own |
| no later change | is applied |
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, IMAGE_OPERATIONS, Operation
from spark_jobs.folds.key_groups import entry_keys

COLUMNS = ("op", "order_key", "key_before", "key", "after_complete")
"""The columns of a change record that this module reads."""

DELETE, REPLACE, TRUNCATE = Operation.DELETE.value, Operation.REPLACE.value, Operation.TRUNCATE.value
IMAGES = pa.array(sorted(operation.value for operation in IMAGE_OPERATIONS))
NO_ROWS = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))
Mask = npt.NDArray[np.bool_]


@dataclass
class LaterChanges:
    """``applied``: key and order key of each change; ``whole``, ``partial``: by key, the highest order key of a change
    that leaves nothing of earlier ones, and of any other; ``truncates``: the order keys of those that count;
    ``all_truncates``: those that are ignored, too."""

    applied: set[tuple[str, str]] = field(default_factory=set)
    whole: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    truncates: set[str] = field(default_factory=set)
    all_truncates: set[str] = field(default_factory=set)

    def add(
        self,
        records: pa.Table,
        keys: pa.Array,
        bad: Collection[tuple[str, str]],
        ignore_deletes: bool,
        ignore_truncates: bool,
    ) -> None:
        """``records``: applied ones. ``keys``: those of late changes; others do not matter. ``bad``: key and order key
        of records that are or were in quarantine."""
        truncates = records["order_key"].filter(pc.equal(records["op"], TRUNCATE)).to_pylist()
        self.all_truncates.update(truncates)
        if not ignore_truncates:
            self.truncates.update(truncates)
        rows = _with_keys(records)
        rows = rows.filter(pc.is_in(rows["k"], keys))
        gone = pc.equal(rows["op"], DELETE)
        complete = pc.and_(pc.is_in(rows["op"], IMAGES), pc.or_(rows["after_complete"], pc.equal(rows["op"], REPLACE)))
        pairs = list(zip(rows["k"].to_pylist(), rows["order_key"].to_pylist(), strict=True))
        self.applied.update(pairs)
        for pair, is_complete, is_gone in zip(pairs, complete.to_pylist(), gone.to_pylist(), strict=True):
            if is_gone and ignore_deletes:
                continue
            key, order = pair
            last = self.whole if (is_complete or is_gone) and pair not in bad else self.partial
            last[key] = max(order, last.get(key, ""))

    def fates(self, records: pa.Table, newest: str, forgotten: str) -> Fates:
        """``newest``: later changes than this are not late. ``forgotten``: up to this order key, applied changes may
        not be known."""
        last_truncate = max(self.truncates, default="")
        repeated, superseded, unknown = np.zeros((3, len(records)), bool)
        for number, key, order, op in _late(records, newest):
            if op == TRUNCATE:
                repeated[number] = order in self.all_truncates
            elif (key, order) in self.applied:
                repeated[number] = True
            elif order < max(self.whole.get(key, ""), last_truncate):
                superseded[number] = True
            elif order < self.partial.get(key, "") or order <= forgotten:
                unknown[number] = True
        return Fates(repeated, superseded, unknown)


@dataclass(frozen=True)
class Fates:
    """Of records, by their numbers. ``unknown``: what became of the row is not known."""

    repeated: Mask
    superseded: Mask
    unknown: Mask


def late_keys(records: pa.Table, newest: str) -> pa.Array:
    """The keys of late row changes."""
    late = records.filter(pc.and_(pc.less_equal(records["order_key"], newest), _are_rows(records)))
    return pc.unique(_with_keys(late)["k"]).drop_null()


def _late(records: pa.Table, newest: str) -> zip[tuple[int, str, str, str]]:
    matters = pc.or_(_are_rows(records), pc.equal(records["op"], TRUNCATE))
    late = pc.and_(pc.less_equal(records["order_key"], newest), matters).to_numpy()
    numbers = np.flatnonzero(late)
    rows = _with_keys(records.take(pa.array(numbers)), only_rows=False)
    columns = (rows[name].to_pylist() for name in ("k", "order_key", "op"))
    return zip(numbers.tolist(), *columns, strict=True)


def _are_rows(records: pa.Table) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(records["op"], NO_ROWS))


def _with_keys(records: pa.Table, only_rows: bool = True) -> pa.Table:
    rows = records.filter(_are_rows(records)) if only_rows else records
    return rows.append_column("k", entry_keys(rows))
