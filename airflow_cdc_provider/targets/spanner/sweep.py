"""Changes of rows that no staged row names: those older than a truncate leave or are marked, and added columns get
their initial value. A sweep goes through the table in the order of its primary key, page by page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.changes import Counts, Verb
from airflow_cdc_provider.targets.spanner.columns import (
    DELETED_COLUMN,
    FLOATS,
    ORDER_COLUMN,
    SpannerType,
    StoredColumn,
    key_names,
)
from airflow_cdc_provider.targets.spanner.control import Read
from airflow_cdc_provider.targets.spanner.encoding import encode, encode_texts
from airflow_cdc_provider.targets.spanner.names import COPY, ROW
from airflow_cdc_provider.targets.spanner.rows import Stored
from airflow_cdc_provider.targets.spanner.values import decode, row_hashes, text_of, text_value, texts

REHASHED_ROWS = 1_000
"""Rows of a page in which whole rows are read."""


@dataclass(frozen=True)
class Page:
    """``last``: the key where the next page begins; None at the end of the table. ``rows``: how many were read."""

    mutations: list[Any]
    counts: Counts
    last: list[Value] | None
    rows: int


@dataclass(frozen=True)
class Sweep:
    """``before``: of a truncate; only rows with a lower order key leave, all if it is empty."""

    stored: Stored
    plan: MergePlan
    before: str = ""

    @classmethod
    def needed(cls, plan: MergePlan) -> bool:
        return plan.truncated or any(column.initial is not None for column in plan.added)

    @cached_property
    def initial(self) -> Mapping[str, Value]:
        """The initial values of added columns, by the columns of the table."""
        return {
            column.name: _initial_value(added, column)
            for added in self.plan.added
            for column in self.stored.columns
            if column.source == added.name and added.initial is not None
        }

    @property
    def rehashes(self) -> bool:
        """Rows without a key get another hash, and so another primary key."""
        return bool(self.initial) and not self.stored.schema.key and not self.plan.truncated

    @property
    def mutations_of_row(self) -> int:
        if self.rehashes:
            return 1 + self.stored.width
        return len(key_names(self.stored.schema)) + len(self.initial) + 1

    def page(self, read: Read, start: list[Value] | None, limit: int) -> Page:
        """``limit``: rows. Reads one page after the key ``start``, from the beginning if there is none."""
        limit = min(limit, REHASHED_ROWS) if self.rehashes else limit
        keys = key_names(self.stored.schema)
        more = [column.name for column in self.stored.columns] if self.rehashes else self._technical
        found = list(read(self.stored.table, [*keys, *more], mutations.after(start), limit))  # type: ignore[call-arg]
        last = found[-1][: len(keys)] if len(found) == limit else None
        made, counts = self._changes(found, len(keys))
        return Page(made, counts, last, len(found))

    def _changes(self, found: Sequence[list[Value]], width: int) -> tuple[list[Any], Counts]:
        if not found:
            return [], Counts()
        if self.rehashes:
            return self._rehashed(found), Counts()
        leaving = [row for row in found if self._leaves(row, width)]
        made = []
        if self.plan.truncated and not self.plan.soft:
            staying = [row for row in found if not self._leaves(row, width)]
            if leaving:
                keys = mutations.keys(ListValue(values=row[:width]) for row in leaving)
                made.append(mutations.delete(self.stored.table, keys))
            return [*made, *self._updates(staying, width, {})], Counts(deleted=len(leaving))
        marked = [row for row in leaving if not row[width + 1].bool_value] if self.plan.truncated else []
        made = [
            *self._updates(found, width, {}),
            *self._updates(marked, width, {DELETED_COLUMN.name: Value(bool_value=True)}),
        ]
        return made, Counts(updated=len(marked))

    @property
    def _technical(self) -> list[str]:
        if not self.stored.schema.key:
            return []
        return [ORDER_COLUMN.name, *([DELETED_COLUMN.name] if self.stored.soft else [])]

    def _leaves(self, row: Sequence[Value], width: int) -> bool:
        if not self._technical:
            return True
        order, late = str(text_of(row[width])), self.plan.truncated_at
        return (not self.before or order < self.before) and (not late or order <= late)

    def _updates(self, rows: Sequence[list[Value]], width: int, more: Mapping[str, Value]) -> list[Any]:
        values = dict(more) if more else dict(self.initial)
        if not rows or not values:
            return []
        written = (ListValue(values=[*row[:width], *values.values()]) for row in rows)
        columns = [*key_names(self.stored.schema), *values]
        return [mutations.write(Verb.UPDATE, self.stored.table, columns, written)]

    def _rehashed(self, found: Sequence[list[Value]]) -> list[Any]:
        """A row that moves behind the page is met again, and changes no more."""
        columns = list(zip(*(row[2:] for row in found), strict=True))
        arrays = {
            column.name: (self._filled(column, values), column.type)
            for column, values in zip(self.stored.columns, columns, strict=True)
        }
        hashes = row_hashes(arrays, len(found))
        moved = [number for number, row in enumerate(found) if text_of(row[0]) != hashes[number]]
        if not moved:
            return []
        written = {
            ROW: encode_texts(hashes),
            COPY: encode_texts(row[1].string_value for row in found),
            **{name: encode(array, kind) for name, (array, kind) in arrays.items()},
        }
        taken = pa.array(moved)
        old = mutations.keys(ListValue(values=found[number][:2]) for number in moved)
        return [
            mutations.delete(self.stored.table, old),
            mutations.write_columns(
                Verb.UPSERT, self.stored.table, {name: column.take(taken) for name, column in written.items()}
            ),
        ]

    def _filled(self, column: StoredColumn, values: Sequence[Value]) -> pa.Array:
        initial = self.initial.get(column.name)
        return decode(list(values) if initial is None else [initial] * len(values), column)


def _initial_value(added: Column, column: StoredColumn) -> Value:
    """As the column stores it."""
    canonical = json.loads(added.initial or "null")
    if canonical is None:
        return Value(null_value=0)  # type: ignore[arg-type]
    if column.type is SpannerType.BOOL:
        return Value(bool_value=canonical)
    if column.type in FLOATS and not isinstance(canonical, str):
        return Value(number_value=canonical)
    plain = canonical if isinstance(canonical, str) else json.dumps(canonical)
    (text,) = texts(decode([Value(string_value=plain)], column), column.type).to_pylist()
    return text_value(text)
