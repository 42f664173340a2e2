"""What a job does itself instead of handing it to Spark, which plans and compiles for seconds before its first row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.staging.store import Store
from spark_jobs.parquet_files import opened

MOST_ROWS = 250_000
"""Rows of one table's batch that are worked on here."""

MOST_BYTES = 64 << 20
"""Memory that they may take, as their files tell it."""


def few(rows: int) -> bool:
    return rows <= MOST_ROWS


def read_few(store: Store, paths: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table | None:
    """All rows of one file or more; None where they take more memory than may be taken here."""
    pieces, left = [], MOST_BYTES
    for path in paths:
        with opened(store, path) as file:
            left -= _bytes(file.metadata, columns)
            if left < 0:
                return None
            pieces.append(file.read(columns))
    return pa.concat_tables(pieces)


def _bytes(file: pq.FileMetaData, columns: Sequence[str] | None) -> int:
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    parts = [group.column(number) for group in groups for number in range(group.num_columns)]
    wanted = (part for part in parts if columns is None or part.path_in_schema.split(".")[0] in columns)
    return sum(part.total_uncompressed_size for part in wanted)
