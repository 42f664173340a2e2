"""What a job does itself instead of handing it to Spark, which plans and compiles for seconds before its first row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from airflow_cdc_provider.staging.store import Store
from spark_jobs.parquet_files import opened

MOST_ROWS = 250_000
"""Rows of one table's batch that are worked on here."""

MOST_BYTES = 128 << 20
"""Memory that they may take, as their files tell it."""


def few(rows: int) -> bool:
    return rows <= MOST_ROWS


def read_few(store: Store, paths: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table | None:
    """All rows of one file or more; None where they take more memory than may be taken here."""
    pieces, left = [], MOST_BYTES
    for path in paths:
        with opened(store, path) as file:
            groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
            left -= sum(group.total_byte_size for group in groups)
            if left < 0:
                return None
            pieces.append(file.read(columns))
    return pa.concat_tables(pieces)
