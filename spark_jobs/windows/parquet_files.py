"""Parquet files in staging, read without Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store


def part_files(store: Store, folder: str) -> list[str]:
    """The files that Spark wrote into a folder."""
    return [f"{folder}/{name}" for name in store.names(folder) if name.endswith(".parquet")]


@contextlib.contextmanager
def open_parquet(store: Store, path: str, footer: pq.FileMetaData | None = None) -> Iterator[pq.ParquetFile]:
    """``footer``: where it has been read already."""
    with store.open_input(path) as content, pq.ParquetFile(content, metadata=footer) as file:
        yield file


def iter_batches(store: Store, path: str) -> Iterator[pa.RecordBatch]:
    with open_parquet(store, path) as file:
        yield from file.iter_batches()


def column_statistics(store: Store, paths: Iterable[str], column: int) -> Iterator[pq.Statistics | None]:
    """Of a column, given by its index, in each piece of these files; None for a piece without them."""
    for path in paths:
        with open_parquet(store, path) as file:
            for number in range(file.metadata.num_row_groups):
                yield file.metadata.row_group(number).column(column).statistics


def count_rows(store: Store, folder: str) -> int:
    total = 0
    for path in part_files(store, folder):
        with open_parquet(store, path) as file:
            total += file.metadata.num_rows
    return total
