"""What a job does itself instead of handing it to Spark, which plans and compiles for seconds before its first row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Condition

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store
from spark_jobs.windows.parquet_files import opened

MOST_ROWS = 250_000
"""Rows of one table's batch that are worked on here."""

MOST_BYTES = 64 << 20
"""Memory that the rows of all tables together may take, as their files tell it."""


@dataclass
class Room:
    """Memory that the tables of this process share."""

    most: int
    _held: int = 0
    _given_back: Condition = field(default_factory=Condition, repr=False)

    @contextlib.contextmanager
    def held(self, size: int) -> Iterator[None]:
        """Waits until ``size``, no more than ``most``, is free. Not for whoever holds some already: two that wait for
        each other would wait for ever."""
        with self._given_back:
            self._given_back.wait_for(lambda: self._held + size <= self.most)
            self._held += size
        try:
            yield
        finally:
            with self._given_back:
                self._held -= size
                self._given_back.notify_all()


ROOM = Room(MOST_BYTES)


def few(rows: int) -> bool:
    return rows <= MOST_ROWS


@contextlib.contextmanager
def read_few(store: Store, paths: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[pa.Table | None]:
    """All rows of one file or more, with their memory held until the block ends; None where they take more than may be
    taken here."""
    footers, size = {}, 0
    for path in paths:
        with opened(store, path) as file:
            footers[path] = file.metadata
        size += _bytes(footers[path], columns)
        if size > ROOM.most:
            yield None
            return
    with ROOM.held(size):
        yield pa.concat_tables([_read(store, path, footer, columns) for path, footer in footers.items()])


def _read(store: Store, path: str, footer: pq.FileMetaData, columns: Sequence[str] | None) -> pa.Table:
    with opened(store, path, footer) as file:
        return file.read(columns)


def _bytes(file: pq.FileMetaData, columns: Sequence[str] | None) -> int:
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    parts = [group.column(number) for group in groups for number in range(group.num_columns)]
    wanted = (part for part in parts if columns is None or part.path_in_schema.split(".")[0] in columns)
    return sum(part.total_uncompressed_size for part in wanted)
