"""The fold of a table without a key, on Arrow tables: equal rows are counted, plus the arrivals, minus the departures.

Rows have no order guard: a batch must be applied exactly once, which fencing token and cursor ensure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, NO_ROW, OP
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.exact_values import Numbers, encode_rows
from spark_jobs.folds.arrow_rows import typed_arrays
from spark_jobs.folds.initial_values import with_initials
from spark_jobs.folds.lives import FoldError

ARRIVALS = pa.array([Operation.INSERT.value, Operation.READ.value, Operation.UPDATE.value])
DEPARTURES = pa.array([Operation.UPDATE.value, Operation.DELETE.value])
KEPT_DEPARTURES = pa.array([Operation.UPDATE.value])

CountRows = Callable[[pa.Table], Sequence[int]]


@dataclass(frozen=True)
class KeylessRows:
    """``keep_deleted``: deletes are ignored. ``count``: how often the target has each of some distinct rows."""

    schema: TableSchema
    initials: Mapping[str, Mapping[str, str]]
    keep_deleted: bool
    count: CountRows

    def fold(self, entries: pa.Table) -> pa.Table:
        """Staged rows: one that deletes all equal rows, and others that insert as many as remain. Raises FoldError,
        where an image is partial or the target has fewer rows than are deleted, and one of
        ``arrow_rows.CONVERSION_ERRORS``."""
        rows, net = self._net(entries)
        decreased = np.flatnonzero(net < 0)
        remaining = np.zeros(len(decreased), np.int64)
        if len(decreased):
            remaining = np.array(self.count(rows.take(pa.array(decreased))), np.int64) + net[decreased]
        if (remaining < 0).any():
            raise FoldError(NO_ROW)
        copies = np.concatenate([np.repeat(np.arange(len(net)), np.maximum(net, 0)), np.repeat(decreased, remaining)])
        staged = [_staged(rows, decreased, GONE), _staged(rows, copies, COPY)]
        return pa.concat_tables(staged)

    def _net(self, entries: pa.Table) -> tuple[pa.Table, Numbers]:
        """Distinct rows, and the net change of their counts."""
        entries = entries.take(pa.array(_first_of_each(entries["order_key"])))
        arrivals = entries.filter(pc.is_in(entries["op"], ARRIVALS))
        departures = entries.filter(pc.is_in(entries["op"], KEPT_DEPARTURES if self.keep_deleted else DEPARTURES))
        sides = [_side(arrivals, "after"), _side(departures, "before")]
        images = pa.concat_tables(sides)
        if not pc.all(images["whole"]).as_py() and len(images):
            raise FoldError(NO_ROW)
        columns = typed_arrays(with_initials(images["image"], images["schema_id"], self.initials), self.schema)
        rows = pa.table(columns, self.schema.names)
        codes = encode_rows(rows.columns, len(rows)).codes
        signs = np.repeat([1, -1], [len(arrivals), len(departures)])
        _, first = np.unique(codes, return_index=True)
        return rows.take(pa.array(first)), np.bincount(codes, signs, len(first)).astype(np.int64)


def _first_of_each(order_keys: pa.ChunkedArray) -> Numbers:
    """Records that come again have the order key of the first one."""
    codes = encode_rows([order_keys], len(order_keys)).codes
    return np.unique(codes, return_index=True)[1].astype(np.int64)


def _side(records: pa.Table, side: str) -> pa.Table:
    columns = [records["schema_id"], records[side], records[f"{side}_complete"]]
    return pa.table(columns, ["schema_id", "image", "whole"])


def _staged(rows: pa.Table, numbers: Numbers, op: str) -> pa.Table:
    return rows.take(pa.array(numbers, pa.int64())).append_column(OP, pa.repeat(pa.scalar(op), len(numbers)))
