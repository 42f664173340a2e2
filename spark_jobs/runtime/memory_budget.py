"""What the driver processes itself: Spark plans and compiles for seconds before its first row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Condition

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from spark_jobs.windows.parquet_files import open_parquet

MAX_BYTES = 64 << 20
"""The memory that the rows of all tables together may take in the driver, by the sizes in their Parquet footers."""


@dataclass
class MemoryBudget:
    """The memory that the tables of this process share."""

    limit: int
    _reserved: int = 0
    _released: Condition = field(default_factory=Condition, repr=False)

    @contextlib.contextmanager
    def reserve(self, size: int) -> Iterator[None]:
        """Wait until ``size`` bytes, at most ``limit``, are free. A thread must not reserve a second time while it
        holds a reservation: two such threads deadlock."""
        with self._released:
            self._released.wait_for(lambda: self._reserved + size <= self.limit)
            self._reserved += size
        try:
            yield
        finally:
            with self._released:
                self._reserved -= size
                self._released.notify_all()


BUDGET = MemoryBudget(MAX_BYTES)


FileGroup = tuple[Sequence[str], pa.Schema]
"""Paths, and the columns to read of them."""


@contextlib.contextmanager
def read_small_files(store: Store, *groups: FileGroup) -> Iterator[list[pa.Table]]:
    """All rows of the files, one table per group, whose memory stays reserved until the block ends. Raises NeedsSpark
    where it exceeds the budget."""
    footers, size = {}, 0
    for paths, columns in groups:
        for path in paths:
            with open_parquet(store, path) as file:
                footers[path] = file.metadata
            size += size_of(footers[path], columns)
            if size > BUDGET.limit:
                raise NeedsSpark(f"more than {BUDGET.limit >> 20} MiB of rows")
    with BUDGET.reserve(size):
        yield [_read_group(store, paths, columns, footers) for paths, columns in groups]


def _read_group(
    store: Store, paths: Sequence[str], columns: pa.Schema, footers: Mapping[str, pq.FileMetaData]
) -> pa.Table:
    tables = [_read(store, path, footers[path], columns) for path in paths]
    return pa.concat_tables(tables) if tables else columns.empty_table()


def _read(store: Store, path: str, footer: pq.FileMetaData, columns: pa.Schema) -> pa.Table:
    with open_parquet(store, path, footer) as file:
        return file.read(columns.names).select(columns.names).cast(columns)


def size_of(file: pq.FileMetaData, columns: pa.Schema) -> int:
    """The bytes of these columns before compression."""
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    names = set(columns.names)
    selected = (chunk for chunk in chunks if not names.isdisjoint(_beginnings(chunk.path_in_schema)))
    return sum(chunk.total_uncompressed_size for chunk in selected)


def _beginnings(path: str) -> Iterator[str]:
    """``a.b.c`` → ``a``, ``a.b``, ``a.b.c``: the name of a column may contain dots."""
    return accumulate(path.split("."), "{}.{}".format)
