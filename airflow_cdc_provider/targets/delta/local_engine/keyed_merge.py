"""The merge of a table with a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import DELETED, GONE, KNOWN, LIVE, OP, ORDER, MergePlan
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.changes import Changes, added, all_removed, marks
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import Positions
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches, rows_at
from airflow_cdc_provider.targets.delta.local_engine.log_replay import TableSnapshot, live_rows
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import column_order
from airflow_cdc_provider.targets.exact_values import Numbers
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _MarkedRows:
    """Rows of a file that the merge marks deleted. The ``kept`` ones are written again, with the changes of the staged
    rows ``by``: soft deletes, and updates that do not know all values."""

    match: KeyMatches
    positions: Positions
    kept: Positions
    by: Numbers


@dataclass(frozen=True)
class KeyedMerge:
    store: Store
    table: str
    snapshot: TableSnapshot
    staged: pa.Table
    plan: MergePlan

    def changes(self, matches: Sequence[KeyMatches]) -> Changes:
        """Raises NeedsSpark where a row is missing that must exist, which Spark reports."""
        _require_distinct(matches)
        is_delete, is_partial = self._is_delete, self._is_partial
        has_row = np.zeros(len(self.staged), bool)
        written = np.zeros(len(self.staged), bool)
        marked_rows, updated, deleted = list[_MarkedRows](), 0, 0
        for match in matches:
            has_row[match.numbers] = True
            newer = self._newer(match)
            if self.plan.truncated and not newer.all():
                raise NeedsSpark("rows newer than a truncate")
            deletes = newer & is_delete[match.numbers] & (self.plan.on_delete is not OnDelete.IGNORE)
            updates = newer & ~is_delete[match.numbers]
            rewritten = updates & is_partial[match.numbers]
            written[match.numbers[updates & ~rewritten]] = True
            flagged = deletes if self.plan.soft else np.zeros(len(deletes), bool)
            updated += int(updates.sum() + flagged.sum())
            deleted += int(deletes.sum() - flagged.sum())
            kept = flagged | rewritten
            if (marked := deletes | updates).any():
                marked_rows.append(
                    _MarkedRows(match, match.positions[marked], match.positions[kept], match.numbers[kept])
                )
        inserted = ~has_row & ~is_delete
        if (inserted & is_partial & self._requires_row).any():
            raise NeedsSpark("a change without its row")
        rows = self._new_rows(written | inserted, self._rewritten_rows(marked_rows))
        if self.plan.truncated:
            removed = all_removed(self.snapshot)
            deleted = live_rows(self.snapshot) - updated
        else:
            removed = list(marks(self.store, self.table, [(rows.match, rows.positions) for rows in marked_rows]))
        actions = (*removed, *added(self.store, self.table, self.snapshot, rows))
        return Changes(actions, len(self.staged), int(inserted.sum()), updated, deleted)

    @cached_property
    def _is_delete(self) -> Mask:
        return pc.equal(self.staged[OP], GONE).to_numpy()  # type: ignore[no-any-return]

    @cached_property
    def _is_partial(self) -> Mask:
        """Rows that live and lack values."""
        if not self.plan.partial:
            return np.zeros(len(self.staged), bool)
        return pc.is_valid(self.staged[KNOWN]).to_numpy() & ~self._is_delete  # type: ignore[no-any-return]

    @cached_property
    def _requires_row(self) -> Mask:
        return pc.equal(self.staged[OP], LIVE).to_numpy()  # type: ignore[no-any-return]

    def _newer(self, match: KeyMatches) -> Mask:
        staged = self.staged[ORDER].take(pa.array(match.numbers))
        compare = pc.greater_equal if self.plan.not_older else pc.greater
        return compare(staged, match.orders).fill_null(self.plan.not_older).to_numpy()  # type: ignore[no-any-return]

    def _new_rows(self, written: Mask, rewritten: Sequence[pa.Table]) -> pa.Table:
        if self.plan.truncated and rewritten:
            raise NeedsSpark("a truncate before changes without all columns")
        staged = self._in_table_columns(self.staged.filter(pa.array(written)), np.zeros(int(written.sum()), bool))
        return pa.concat_tables([staged, *rewritten]).sort_by([(name, "ascending") for name in self.plan.schema.key])

    def _in_table_columns(self, rows: pa.Table, flags: Mask) -> pa.Table:
        if self.plan.soft:
            rows = rows.append_column(DELETED, pa.array(flags))
        return rows.select(column_order(self.snapshot))

    def _rewritten_rows(self, marked_rows: Sequence[_MarkedRows]) -> list[pa.Table]:
        columns = self._in_table_columns(self.staged.slice(0, 0), np.zeros(0, bool)).schema
        tables = list[pa.Table]()
        for rows in marked_rows:
            if len(rows.kept):
                old = pa.concat_tables(rows_at(self.store, self.table, rows.match.file, rows.kept, columns))
                tables.append(self._changed(old, rows.by))
        return tables

    def _changed(self, old: pa.Table, by: Numbers) -> pa.Table:
        """Old rows with the known values of staged rows. A soft-deleted row that comes back keeps none of its own.
        Raises NeedsSpark where it gets a change that requires a live one."""
        staged, gone = self.staged.take(pa.array(by)), self._is_delete[by]
        revived = np.zeros(len(by), bool)
        if self.plan.soft:
            revived = old[DELETED].fill_null(False).to_numpy() & ~gone
            if (revived & self._requires_row[by]).any():
                raise NeedsSpark("a change of a soft-deleted row")
        columns = dict[str, pa.ChunkedArray]()
        for name in self.plan.schema.names:
            kept = pc.if_else(pa.array(revived), pa.scalar(None, old.schema.field(name).type), old[name])
            columns[name] = pc.if_else(pa.array(self._has_value(name, by)), staged[name], kept)
        columns[ORDER] = staged[ORDER]
        return self._in_table_columns(pa.table(columns), gone)

    def _has_value(self, name: str, by: Numbers) -> Mask:
        """Which of the staged rows have a value for a column. Without ``_cdc_known`` a delete has only its key."""
        if name in self.plan.schema.key:
            return np.ones(len(by), bool)
        if not self.plan.partial:
            return ~self._is_delete[by]
        known = self.staged[KNOWN].take(pa.array(by)).to_pylist()
        return np.array([names is None or name in names for names in known], bool)


def _require_distinct(matches: Sequence[KeyMatches]) -> None:
    numbers = np.concatenate([match.numbers for match in matches]) if matches else np.empty(0)
    if len(np.unique(numbers)) < len(numbers):
        raise NeedsSpark("several rows with one key")
