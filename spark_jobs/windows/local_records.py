"""The changes of rows in some windows, read by this process itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, Operation
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.runtime.memory_budget import read_small_files
from spark_jobs.windows.log_reader import WindowSlice

NON_ROW_OPERATIONS = pa.array(sorted(operation.value for operation in (*CONTROL_OPERATIONS, Operation.UNREADABLE)))


@contextlib.contextmanager
def local_records(log: ChangeLog, windows: Sequence[WindowSlice], after: str, columns: pa.Schema) -> Iterator[pa.Table]:
    """Records after an order key: no control events, and none that no decoder understood. Their memory is reserved
    until the block ends. Raises NeedsSpark where it exceeds the budget."""
    files = [file for window in windows for file in window.part.files]
    if not files:
        yield columns.empty_table()
        return
    with read_small_files(log.store, [file.path for file in files], columns.names) as records:
        yield records.filter(_row_changes(records, after))


def _row_changes(records: pa.Table, after: str) -> pa.ChunkedArray:
    return pc.and_(pc.greater(records["order_key"], after), pc.invert(pc.is_in(records["op"], NON_ROW_OPERATIONS)))
