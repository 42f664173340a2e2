"""The fold of a table without a key, against counting."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, OP
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.keyless_rows import KeylessRows
from spark_jobs.folds.lives import FoldError

SCHEMA = TableSchema(
    "t",
    (Column("v", LogicalType(Kind.TEXT)), Column("n", LogicalType(Kind.INT32)), Column("f", LogicalType(Kind.FLOAT64))),
)
ROWS = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, None]), st.sampled_from([0.0, -0.0, None]))
ROW = ("a", 1, 0.0)
CHANGES = st.lists(st.tuples(st.sampled_from(["insert", "delete", "update"]), ROWS, ROWS), max_size=12)

Row = tuple[Any, ...]
Change = tuple[str, Row, Row]


def image(row: Row) -> str:
    return canonical(dict(zip(SCHEMA.names, row, strict=True)))


def exact(row: Row) -> tuple[str, ...]:
    return tuple(map(str, row))


def plain(rows: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def entries(changes: list[Change]) -> pa.Table:
    records = [
        {
            "op": op,
            "before": None if op == "insert" else image(old),
            "after": None if op == "delete" else image(new),
            "before_complete": op != "insert",
            "after_complete": op != "delete",
            "order_key": f"{number:04d}",
            "schema_id": "s",
        }
        for number, (op, old, new) in enumerate(changes)
    ]
    return pa.Table.from_pylist(records, ENTRIES)


@given(st.lists(ROWS, max_size=6), CHANGES)
def test_staged_rows_take_the_target_to_the_counts_of_the_source(target: list[Row], changes: list[Change]) -> None:
    held = Counter(map(exact, target))
    expected = held.copy()
    for op, old, new in changes:
        expected.update([exact(new)] if op != "delete" else [])
        expected.subtract([exact(old)] if op != "insert" else [])
    fold = KeylessRows(SCHEMA, {}, False, lambda rows: [held[key] for key in map(exact, plain(rows))])
    if min(expected.values(), default=0) < 0:
        with pytest.raises(FoldError):
            fold.fold(entries(changes))
        return
    staged = fold.fold(entries(changes))
    ops, keys = staged[OP].to_pylist(), [exact(row[:-1]) for row in plain(staged)]
    left = held.copy()
    for op, key in zip(ops, keys, strict=True):
        if op == GONE:
            del left[key]
    left.update(key for op, key in zip(ops, keys, strict=True) if op == COPY)
    assert left == +expected


def test_a_record_that_comes_again_counts_once() -> None:
    once = entries([("insert", ROW, ROW)])
    staged = KeylessRows(SCHEMA, {}, False, lambda rows: [0] * len(rows)).fold(pa.concat_tables([once, once]))
    assert plain(staged) == [(*ROW, COPY)]


def test_ignored_deletes_leave_the_rows() -> None:
    fold = KeylessRows(SCHEMA, {}, True, lambda rows: [0] * len(rows))
    assert len(fold.fold(entries([("delete", ROW, ROW)]))) == 0


def test_an_image_without_all_columns_is_an_error() -> None:
    partial = entries([("insert", ROW, ROW)]).set_column(6, "after_complete", pa.array([False]))
    with pytest.raises(FoldError):
        KeylessRows(SCHEMA, {}, False, lambda rows: []).fold(partial)


def test_older_rows_have_the_initial_value_of_an_added_column() -> None:
    older = entries([("insert", ROW, ROW)]).set_column(4, "after", pa.array(['{"v":"a","n":1}']))
    staged = KeylessRows(SCHEMA, {"s": {"f": "2.5"}}, False, lambda rows: []).fold(older)
    assert plain(staged) == [("a", 1, 2.5, COPY)]
