"""Rows of a batch as Spanner's values, and the mutations that apply them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, OP, ORDER, MergePlan
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.changes import (
    REFUSED,
    Change,
    Counts,
    Found,
    KeyedRules,
    Staged,
    Verb,
    counts_of,
)
from airflow_cdc_provider.targets.spanner.columns import (
    DELETED_COLUMN,
    ORDER_COLUMN,
    SpannerType,
    StoredColumn,
    key_names,
    stored_columns,
)
from airflow_cdc_provider.targets.spanner.control import Read
from airflow_cdc_provider.targets.spanner.encoding import encode, encode_texts
from airflow_cdc_provider.targets.spanner.names import COPY, ROW
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.values import key_of, row_hashes, scalars, text_of, text_value

KEYS_AT_ONCE = 5_000
"""Keys of one read request."""

Key = tuple[str | float | bool | None, ...]


@dataclass(frozen=True)
class Stored:
    """How a table is stored. ``soft``: it marks deleted rows."""

    table: str
    schema: TableSchema
    soft: bool
    json: Json

    @cached_property
    def columns(self) -> tuple[StoredColumn, ...]:
        return stored_columns(self.schema, self.json)

    @cached_property
    def key_columns(self) -> tuple[StoredColumn, ...]:
        by_source = {column.source: column for column in self.columns}
        return tuple(by_source[name] for name in self.schema.key)

    @cached_property
    def key_types(self) -> tuple[SpannerType, ...]:
        return tuple(column.type for column in self.key_columns)

    @property
    def width(self) -> int:
        """The number of columns, technical ones included: as many mutations as a new row needs."""
        return len(self.columns) + (2 if not self.schema.key or self.soft else 1)


@dataclass(frozen=True)
class Applied:
    """``refused``: rows that require a row which the target lacks."""

    mutations: list[Any]
    counts: Counts
    refused: int = 0


@dataclass(frozen=True)
class KeyedRows:
    """Staged rows of a table with a key."""

    stored: Stored
    rows: pa.Table

    @cached_property
    def staged(self) -> list[Staged]:
        known = self.rows[KNOWN].to_pylist() if KNOWN in self.rows.column_names else [None] * len(self.rows)
        pairs = zip(self.rows[OP].to_pylist(), self.rows[ORDER].to_pylist(), known, strict=True)
        return [Staged(op, order, None if names is None else frozenset(names)) for op, order, names in pairs]

    @cached_property
    def keys(self) -> list[Key]:
        columns = (
            scalars(self.rows[column.source].combine_chunks(), column.type) for column in self.stored.key_columns
        )
        return list(zip(*columns, strict=True))

    def key_sets(self) -> Iterator[Any]:
        """For one read request each."""
        columns = [self._encoded(column) for column in self.stored.key_columns]
        for start in range(0, len(self.rows), KEYS_AT_ONCE):
            yield mutations.encoded_keys(column.slice(start, KEYS_AT_ONCE) for column in columns)

    def found(self, read: Read) -> dict[Key, Found]:
        """The rows of the target with these keys."""
        stored = self.stored
        columns = [*key_names(stored.schema), ORDER_COLUMN.name, *([DELETED_COLUMN.name] if stored.soft else [])]
        found = {}
        for key_set in self.key_sets():
            for row in read(stored.table, columns, key_set):
                deleted = row.pop().bool_value if stored.soft else False
                *key, order = row
                found[key_of(key, stored.key_types)] = Found(str(text_of(order)), deleted)
        return found

    def apply(self, plan: MergePlan, found: Mapping[Key, Found]) -> Applied:
        rules, groups, counts, refused = KeyedRules.of(plan), defaultdict[Change, list[int]](list), Counts(), 0
        for number, (staged, key) in enumerate(zip(self.staged, self.keys, strict=True)):
            change = rules.change(staged, found.get(key))
            if change is REFUSED:
                refused += 1
            elif change is not None:
                groups[change].append(number)
        for change, numbers in groups.items():
            counts += counts_of(change) * len(numbers)
        return Applied([self._mutation(change, numbers) for change, numbers in groups.items()], counts, refused)

    def _mutation(self, change: Change, numbers: Sequence[int]) -> Any:
        taken = pa.array(numbers)
        if change.verb is Verb.DELETE:
            keys = (self._encoded(column).take(taken) for column in self.stored.key_columns)
            return mutations.delete(self.stored.table, mutations.encoded_keys(keys))
        written = [
            column
            for column in self.stored.columns
            if change.columns is None or column.source in change.columns or column.source in self.stored.schema.key
        ]
        columns = {column.name: self._encoded(column).take(taken) for column in (*written, ORDER_COLUMN)}
        if self.stored.soft:
            marks = pa.repeat(pa.scalar(change.deleted), len(numbers))
            columns[DELETED_COLUMN.name] = encode(marks, DELETED_COLUMN.type)
        return mutations.write_columns(change.verb, self.stored.table, columns)

    def _encoded(self, column: StoredColumn) -> pa.Array:
        if column.source not in self._columns:
            self._columns[column.source] = encode_column(self.rows, column)
        return self._columns[column.source]

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        return {}


@dataclass(frozen=True)
class KeylessRows:
    """Staged rows of a table without a key, in which a key of Spanner's is the hash of a row and a text of its own."""

    stored: Stored
    rows: pa.Table

    def apply(self, read: Read) -> Applied:
        """Delete all rows that are equal to a staged one with ``_cdc_op`` D, and insert the others."""
        gone = [op == GONE for op in self.rows[OP].to_pylist()]
        hashes = hashes_of(self.rows, self.stored)
        leaving = sorted({one for one, goes in zip(hashes, gone, strict=True) if goes})
        found = count_hashes(read, self.stored.table, leaving)
        arriving = [number for number, goes in enumerate(gone) if not goes]
        made = []
        if leaving:
            made.append(mutations.delete(self.stored.table, mutations.prefixes([text_value(one)] for one in leaving)))
        if arriving:
            made.append(self._inserts(arriving, hashes))
        return Applied(made, Counts(inserted=len(arriving), deleted=sum(found.values())))

    def _inserts(self, numbers: Sequence[int], hashes: Sequence[str]) -> Any:
        rows = self.rows.take(pa.array(numbers))
        columns = {column.name: encode_column(rows, column) for column in self.stored.columns}
        columns[ROW] = encode_texts(hashes[number] for number in numbers)
        columns[COPY] = encode_texts(uuid.uuid4().hex for _ in numbers)
        return mutations.write_columns(Verb.INSERT, self.stored.table, columns)


def encode_column(rows: pa.Table, column: StoredColumn) -> pa.Array:
    return encode(rows[column.source].combine_chunks(), column.type)


def hashes_of(rows: pa.Table, stored: Stored) -> list[str]:
    """Of the columns of the source."""
    combined = rows.combine_chunks()
    columns = {
        column.name: (combined[column.source].chunk(0), column.type)
        for column in stored.columns
        if combined[column.source].num_chunks
    }
    return row_hashes(columns, len(rows))


def least_order(rows: pa.Table, stored: Stored) -> str:
    """The least order key of these rows; empty if they have none."""
    return str(pc.min(rows[ORDER]).as_py() or "") if stored.schema.key else ""


def count_hashes(read: Read, table: str, hashes: Sequence[str]) -> dict[str, int]:
    """How many rows have each of these hashes; those that no row has are left out."""
    counts = defaultdict[str, int](int)
    for start in range(0, len(hashes), KEYS_AT_ONCE):
        asked = hashes[start : start + KEYS_AT_ONCE]
        for (found,) in read(table, [ROW], mutations.prefixes([text_value(one)] for one in asked)):
            counts[str(text_of(found))] += 1
    return counts
