"""The ranges of a column of the key in which the staged rows lie, so that the target reads only those files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import Range, merge_ranges
from airflow_cdc_provider.core.table.schema import Column, Kind
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.sparksql.types import TEXTUAL, literal
from spark_jobs.batches.row_files import name_in_file
from spark_jobs.windows.parquet_files import open_parquet, part_files

RANGES = 16
"""More ranges would cost the planner more than skipping files saves."""

PIECE_ROWS = 4096

COUNTABLE = frozenset({Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
"""Kinds whose values can be subtracted, which finds the widest gaps between them."""


def key_bounds(store: Store, folder: str, column: Column) -> tuple[tuple[str, str, str], ...]:
    """Up to 16 ranges as (column, low, high) in literals, read from the staged files; none where ranges do not help."""
    if column.type.kind in TEXTUAL:
        extremes = list(_extremes(store, folder, column.name))
        ranges: tuple[Range, ...] = (
            ((min(low for low, _ in extremes), max(high for _, high in extremes)),) if extremes else ()
        )
    elif column.type.kind in COUNTABLE:
        ranges = ()
        for piece in _pieces(store, folder, column.name):
            ranges = merge_ranges((*ranges, *((value, value) for value in piece)), RANGES)
    else:
        return ()
    return tuple((column.name, _literal(low, column), _literal(high, column)) for low, high in ranges)


def _extremes(store: Store, folder: str, name: str) -> Iterator[Range]:
    for batch in _batches(store, folder, name):
        extremes = pc.min_max(batch)
        if extremes["min"].is_valid:
            yield extremes["min"].as_py(), extremes["max"].as_py()


def _pieces(store: Store, folder: str, name: str) -> Iterator[list[Any]]:
    for batch in _batches(store, folder, name):
        yield [value for value in pc.unique(batch).to_pylist() if value is not None]


def _batches(store: Store, folder: str, name: str) -> Iterator[pa.Array]:
    for path in part_files(store, folder):
        with open_parquet(store, path) as file:
            for batch in file.iter_batches(PIECE_ROWS, columns=[name_in_file(name)]):
                yield batch.column(0)


def _literal(value: Any, column: Column) -> str:
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat()
        return literal(text + ("Z" if column.type.kind is Kind.TIMESTAMPTZ else ""), column.type)
    if isinstance(value, date):
        return literal(value.isoformat(), column.type)
    return literal(str(value) if isinstance(value, Decimal) else value, column.type)
