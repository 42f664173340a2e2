"""What the driver processes itself: Spark plans and compiles for seconds before its first row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Condition

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store
from spark_jobs.engines.needs_spark import NeedsSpark
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


@contextlib.contextmanager
def read_small_files(store: Store, paths: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """All rows of files, whose memory stays reserved until the block ends. Raises NeedsSpark where it exceeds the
    budget, or where there is no file."""
    footers, size = {}, 0
    for path in paths:
        with open_parquet(store, path) as file:
            footers[path] = file.metadata
        size += _bytes(footers[path], columns)
        if size > BUDGET.limit:
            raise NeedsSpark(f"more than {BUDGET.limit >> 20} MiB of rows")
    if not footers:
        raise NeedsSpark("no files of rows")
    with BUDGET.reserve(size):
        yield pa.concat_tables([_read(store, path, footer, columns) for path, footer in footers.items()])


def _read(store: Store, path: str, footer: pq.FileMetaData, columns: Sequence[str] | None) -> pa.Table:
    with open_parquet(store, path, footer) as file:
        return file.read(columns)


def _bytes(file: pq.FileMetaData, columns: Sequence[str] | None) -> int:
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    selected = (chunk for chunk in chunks if columns is None or chunk.path_in_schema.split(".")[0] in columns)
    return sum(chunk.total_uncompressed_size for chunk in selected)
