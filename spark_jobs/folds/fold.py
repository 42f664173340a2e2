"""The fold of a table with a key: all changes of a key become the one row that they leave. Pure; works on Arrow tables.

``entries`` have the columns of ``key_groups.ENTRIES``; the result has those of ``ROWS``. If all images of a key are
whole, its last entry is its row, and such keys are folded as columns. The others are folded one by one (``lives``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, IMAGE_OPERATIONS, Operation
from airflow_cdc_provider.core.table.merge_plan import CONFLICTING_CHANGES, GONE, LIVE
from spark_jobs.folds.duplicates import have_conflicts
from spark_jobs.folds.initial_values import with_initials
from spark_jobs.folds.json_members import key_image
from spark_jobs.folds.key_groups import TEXT, KeyGroups, Mask
from spark_jobs.folds.key_holders import without_passing_rows
from spark_jobs.folds.lives import FoldError, Row, Rules, last_rows

ROWS = pa.schema(
    [
        *(("key", TEXT), ("op", TEXT), ("order_key", TEXT), ("image", TEXT), ("known", pa.list_(TEXT))),
        *(("root", TEXT), ("root_may_be_missing", pa.bool_())),
    ]
)
"""The fields of ``lives.Row``."""

DELETE = Operation.DELETE.value
PARTIAL = pa.array(sorted(IMAGE_OPERATIONS - {Operation.REPLACE}))


@dataclass(frozen=True)
class Fold:
    """``doubly_held``: two rows may have held a key within a transaction."""

    rules: Rules
    doubly_held: bool = False

    def rows(self, entries: pa.Table) -> pa.Table:
        """Raises FoldError."""
        groups = KeyGroups(self._counted(entries))
        if self.doubly_held:
            groups = KeyGroups(without_passing_rows(groups))
        one_by_one = self._one_by_one(groups)
        together = self._together(groups, ~one_by_one)
        if not one_by_one.any():
            return together
        rows = list(last_rows(groups.entries_of(one_by_one), self.rules))
        return pa.concat_tables([together, _table(rows)])

    def _counted(self, entries: pa.Table) -> pa.Table:
        """Deletes that are ignored do not count, except those that another key's row comes from."""
        if self.rules.ignore_deletes:
            entries = entries.filter(pc.or_(pc.not_equal(entries["op"], DELETE), pc.is_valid(entries["phase"])))
        if self.rules.keep_deleted and self.rules.own_row:
            entries = _with_last_images(entries)
        return entries

    def _one_by_one(self, groups: KeyGroups) -> Mask:
        """The keys whose last entry is not their row."""
        entries = groups.entries
        incomplete = pc.and_(pc.is_in(entries["op"], PARTIAL), pc.invert(entries["after_complete"])).to_numpy()
        keys = groups.any_of(incomplete)
        if self.rules.keep_deleted:
            keys |= (groups.counts > 1) & groups.deleted
        if not self.rules.own_row and incomplete.any():
            keys |= groups.any_of(_departures_of(entries, incomplete))
        return keys

    def _together(self, groups: KeyGroups, keys: Mask) -> pa.Table:
        if self.rules.ignore_deletes:
            groups, keys = groups.without_deletes(keys)
        _require_no_conflict(groups, keys)
        last = groups.entries.take(pa.array(groups.last[keys]))
        gone = pc.equal(last["op"], DELETE)
        without_image = pc.and_(gone, pc.is_null(last["after"])).combine_chunks()
        images = pc.replace_with_mask(
            with_initials(last["after"], last["schema_id"], self.rules.initials).combine_chunks(),
            without_image,
            pa.array([key_image(self.rules.key, key) for key in last["k"].filter(without_image).to_pylist()], TEXT),
        )
        known = pa.array([[] if nothing else None for nothing in without_image.to_pylist()], pa.list_(TEXT))
        no_root = pa.nulls(len(last), TEXT)
        columns = [last["k"], pc.if_else(gone, GONE, LIVE), last["order_key"], images, known, no_root]
        return pa.table([*columns, pa.repeat(False, len(last))], schema=ROWS)


def is_partial(rows: pa.Table) -> bool:
    """Whether ``known`` matters: a row that lives lacks values, or one that is gone has some."""
    gone = pc.equal(rows["op"], GONE)
    some = pc.if_else(
        gone, pc.not_equal(pc.fill_null(pc.list_value_length(rows["known"]), 1), 0), pc.is_valid(rows["known"])
    )
    return bool(pc.any(some).as_py())


def _departures_of(entries: pa.Table, incomplete: Mask) -> Mask:
    """Deletes of rows that arrive at another key without all their columns."""
    arrived = pc.and_(pa.array(incomplete), pc.fill_null(pc.equal(entries["phase"], ARRIVES), False))
    links = entries["link_id"].filter(arrived).drop_null()
    departs = pc.and_(pc.equal(entries["op"], DELETE), pc.fill_null(pc.equal(entries["phase"], DEPARTS), False))
    found: Mask = pc.and_(departs, pc.is_in(entries["link_id"], value_set=links.combine_chunks())).to_numpy()
    return found


def _require_no_conflict(groups: KeyGroups, keys: Mask) -> None:
    """Raises FoldError where an entry with the order key of the last one of its key differs from that."""
    codes, last = groups.codes, groups.last
    earlier = np.flatnonzero(keys[codes] & (last[codes] != np.arange(len(codes))))
    others, lasts = pa.array(earlier), pa.array(last[codes[earlier]])
    order = groups.entries["order_key"]
    same = pc.equal(order.take(others), order.take(lasts))
    some = groups.entries.select(["op", "after"])
    if have_conflicts(some.take(others.filter(same)), some.take(lasts.filter(same))):
        raise FoldError(CONFLICTING_CHANGES)


def _with_last_images(entries: pa.Table) -> pa.Table:
    """Deletes with the row as it was: a repair may have to insert it, marked deleted."""
    gone = pc.and_(pc.equal(entries["op"], DELETE), entries["before_complete"])
    after = pc.if_else(gone, entries["before"], entries["after"])
    complete = pc.or_(gone, entries["after_complete"])
    return entries.set_column(entries.column_names.index("after"), "after", after).set_column(
        entries.column_names.index("after_complete"), "after_complete", complete
    )


def _table(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(ROWS)
    return pa.table([pa.array(list(column), one.type) for column, one in zip(columns, ROWS, strict=True)], schema=ROWS)
