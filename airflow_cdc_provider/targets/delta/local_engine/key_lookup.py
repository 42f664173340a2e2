"""Finds the rows with given keys in a table's files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.core.table.merge_plan import ORDER
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import Positions, read_vector
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, TableSnapshot
from airflow_cdc_provider.targets.exact_values import EncodedRows, Numbers, comparable, encode_rows
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

NO_POSITIONS: Positions = np.empty(0, np.int64)

MAX_ROWS = 4_000_000
"""Limit for the rows in files whose keys are looked up: above it, Spark's parallel tasks are faster."""

READERS = 8
"""Threads that look up keys: there are many files, and object stores have a high latency."""


@dataclass(frozen=True)
class KeyMatches:
    """Rows of one file whose key is in the key set. ``numbers``: the index of the key in the set, ``orders``: the rows'
    order keys, NULL where they have none; ``marked``: positions in the file's deletion vector."""

    file: ActiveFile
    marked: Positions
    positions: Positions
    numbers: Numbers
    orders: pa.Array


@dataclass(frozen=True)
class LeadingValues:
    """The values that a column has in a set of keys."""

    column: pa.ChunkedArray

    def may_be_between(self, low: Any, high: Any) -> bool:
        """Whether one of them may lie in ``[low, high]``; True if unknown."""
        if self._comparable is None or low is None or high is None:
            return True
        low, high = self._comparable(low), self._comparable(high)
        at = bisect_left(self._ordered, low)
        return at < len(self._ordered) and self._ordered[at] <= high

    @cached_property
    def _comparable(self) -> Callable[[Any], Any] | None:
        kind = self.column.type
        if self.column.null_count:
            return None
        if pa.types.is_integer(kind):
            return int
        if pa.types.is_date(kind):
            return lambda value: value if isinstance(value, date) else date.fromisoformat(value)
        if pa.types.is_string(kind):
            return str
        return None

    @cached_property
    def _ordered(self) -> Sequence[Any]:
        return sorted(pc.unique(self.column).to_pylist())


@dataclass(frozen=True)
class KeySet:
    """Distinct keys to look up, compared as ``exact_values`` does. ``ordered``: the rows have order keys. ``leading``:
    how many of the first columns show which files are read."""

    keys: pa.Table
    ordered: bool = True
    leading: int = 1

    def may_be_in(self, file: ActiveFile) -> bool:
        low, high = file.stats.get("minValues", {}), file.stats.get("maxValues", {})
        return all(values.may_be_between(low.get(name), high.get(name)) for name, values in self._leading.items())

    def matches(self, store: Store, table: str, file: ActiveFile) -> KeyMatches | None:
        """None if no row has one of the keys. Raises as ``read_vector``."""
        with store.open_input(f"{table}/{file.path}") as content, pq.ParquetFile(content) as parquet:
            starts = np.cumsum([0, *(parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups))])
            groups = [n for n in range(parquet.num_row_groups) if self._in_group(parquet, n)]
            marked = read_vector(store, table, file.vector) if groups and file.vector else NO_POSITIONS
            parts = [self._matches_in_group(parquet, n, int(starts[n]), marked) for n in groups]
        positions, numbers, orders = zip(*parts, strict=True) if parts else ((), (), ())
        if not sum(map(len, positions)):
            return None
        return KeyMatches(file, marked, np.concatenate(positions), np.concatenate(numbers), pa.concat_arrays(orders))

    def _matches_in_group(
        self, parquet: pq.ParquetFile, group: int, start: int, marked: Positions
    ) -> tuple[Positions, Numbers, pa.Array]:
        rows = parquet.read_row_group(group, self.keys.column_names)
        keys = pa.table([_column(rows, field) for field in self.keys.schema], schema=self.keys.schema)
        at, numbers = self._matches(keys)
        live = np.isin(at + start, marked, invert=True)
        at, numbers = at[live], numbers[live]
        if not len(at) or not self.ordered:
            return at + start, numbers, pa.nulls(len(at), pa.string())
        orders = _cast(parquet.read_row_group(group, [ORDER])[ORDER], pa.string()).combine_chunks()
        return at + start, numbers, orders.take(pa.array(at))

    def _matches(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Positions in ``rows``, ascending, and the numbers of their keys."""
        at, codes = np.arange(len(rows)), np.zeros(len(rows), np.int64)
        for column, (values, known) in zip(map(comparable, rows.columns), self._encoded.steps, strict=True):
            indices = pc.index_in(column.take(pa.array(at)) if len(at) < len(column) else column, value_set=values)
            present = indices.is_valid().to_numpy()
            combined = codes[present] * len(values) + indices.drop_null().to_numpy()
            codes = np.searchsorted(known, combined)
            same = np.append(known, -1)[codes] == combined
            at, codes = at[present][same], codes[same]
        return at, self._numbers[codes]

    def _in_group(self, parquet: pq.ParquetFile, group: int) -> bool:
        metadata = parquet.metadata.row_group(group)
        for name, values in self._leading.items():
            index = parquet.schema_arrow.get_field_index(name)
            known = metadata.column(index).statistics if index >= 0 else None  # a column may be newer than the file
            if known is not None and known.has_min_max and not values.may_be_between(known.min, known.max):
                return False
        return True

    @cached_property
    def _leading(self) -> Mapping[str, LeadingValues]:
        return {name: LeadingValues(self.keys[name]) for name in self.keys.column_names[: self.leading]}

    @cached_property
    def _numbers(self) -> Numbers:
        """The number of each key by its code."""
        return np.argsort(self._encoded.codes)

    @cached_property
    def _encoded(self) -> EncodedRows:
        """The code of each key is unique."""
        return encode_rows(self.keys.columns, len(self.keys))


def find_rows(store: Store, table: str, snapshot: TableSnapshot, keys: KeySet) -> Sequence[KeyMatches]:
    """Raises NeedsSpark where too many rows must be read."""
    candidates = [file for file in snapshot.files if len(keys.keys) and keys.may_be_in(file)]
    if sum(file.rows or 0 for file in candidates) > MAX_ROWS:
        raise NeedsSpark(f"more than {MAX_ROWS:,} rows to search")
    with ThreadPoolExecutor(READERS, thread_name_prefix="lookup") as pool:
        lookups = pool.map(partial(keys.matches, store, table), candidates)
        return [match for match in lookups if match is not None]


def rows_at(store: Store, table: str, file: ActiveFile, positions: Positions, columns: pa.Schema) -> Iterator[pa.Table]:
    """Rows, one row group at a time, cast to ``columns``: other writers' files may have other Arrow types, and columns
    that are newer than a file are NULL."""
    with store.open_input(f"{table}/{file.path}") as content, pq.ParquetFile(content) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            end = start + parquet.metadata.row_group(group).num_rows
            inside = positions[(positions >= start) & (positions < end)] - start
            if len(inside):
                rows = parquet.read_row_group(group, columns.names)
                yield pa.table([_column(rows, field) for field in columns], schema=columns).take(pa.array(inside))
            start = end


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    return _cast(rows[field.name], field.type)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise NeedsSpark(f"data files of another writer: {column.type} instead of {kind}") from None
