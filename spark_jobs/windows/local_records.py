"""The change records of some windows, and those of a carry-over, read by this process itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_log import DataFile
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, Operation
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.runtime.memory_budget import read_small_files, size_of
from spark_jobs.windows.driver_reads import CARRIED_SCHEMA
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.windows.parquet_files import open_parquet
from spark_jobs.windows.record_files import SCHEMA

NON_ROW_OPERATIONS = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))


@contextlib.contextmanager
def local_records(log: ChangeLog, windows: Sequence[WindowSlice], after: str, columns: pa.Schema) -> Iterator[pa.Table]:
    """Row changes after an order key: no control events, and none that no decoder understood. Their memory is reserved
    until the block ends. Raises NeedsSpark where it exceeds the budget."""
    with read_small_files(log.store, (_window_files(windows), columns)) as (records,):
        yield records.filter(_row_changes(records, after))


@contextlib.contextmanager
def local_records_and_carry(
    log: ChangeLog, windows: Sequence[WindowSlice], after: str, carry: Sequence[DataFile]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """As ``local_records``, with all columns; and all records of a carry-over."""
    groups = (_window_files(windows), SCHEMA), ([file.path for file in carry], CARRIED_SCHEMA)
    with read_small_files(log.store, *groups) as (records, carried):
        yield records.filter(_row_changes(records, after)), carried


def records_in_batches(
    log: ChangeLog, windows: Sequence[WindowSlice], after: str, columns: pa.Schema
) -> Iterator[pa.Table]:
    """As ``local_records``, a few thousand at a time: nothing is reserved."""
    for path in _window_files(windows):
        with open_parquet(log.store, path) as file:
            for batch in file.iter_batches(columns=columns.names):
                records = pa.table(batch).select(columns.names).cast(columns)
                yield records.filter(_row_changes(records, after))


def records_size(log: ChangeLog, windows: Sequence[WindowSlice], columns: pa.Schema) -> int:
    """The bytes of these columns, as the footers of the files state them."""
    total = 0
    for path in _window_files(windows):
        with open_parquet(log.store, path) as file:
            total += size_of(file.metadata, columns)
    return total


def _window_files(windows: Sequence[WindowSlice]) -> list[str]:
    return [file.path for window in windows for file in window.part.files]


def _row_changes(records: pa.Table, after: str) -> pa.ChunkedArray:
    return pc.and_(pc.greater(records["order_key"], after), pc.invert(pc.is_in(records["op"], NON_ROW_OPERATIONS)))
