"""What the records of a batch are, before they are folded.

Read here and not by Spark: the first query of an application costs seconds, and four narrow columns pass quickly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.changes import ARRIVES, Operation
from airflow_cdc_provider.staging.log import ChangeLog
from spark_jobs.fold import IMAGE_OPERATIONS
from spark_jobs.log_slice import WindowSlice, damaged
from spark_jobs.parquet_files import opened

COLUMNS = ["op", "order_key", "after_complete", "phase", "link_id"]
PIECE_ROWS = 64 * 1024
PARTIAL = pa.array(sorted({*IMAGE_OPERATIONS} - {Operation.REPLACE.value}))


@dataclass(frozen=True)
class Contents:
    """``records`` behind the floor, ``counts`` of them by operation. ``truncated_at``: the order key of the last
    truncate, ``barrier`` that of the last barrier. ``incomplete`` images, ``moved`` ones among them."""

    records: int
    counts: dict[str, int]
    truncated_at: str | None
    barrier: str
    incomplete: int
    moved: int


def look_into(log: ChangeLog, windows: Sequence[WindowSlice], floor: str) -> Contents:
    """One pass over the records. Raises StagingInvalid (STG005) where their number is not what was sealed."""
    counts: Counter[str] = Counter()
    truncated_at: str | None = None
    barrier = ""
    incomplete = moved = 0
    for piece in _pieces(log, windows):
        behind = piece.filter(pc.greater(piece["order_key"], floor))
        counts.update({one["values"]: one["counts"] for one in pc.value_counts(behind["op"]).to_pylist()})
        truncated_at = _last(behind, Operation.TRUNCATE, truncated_at or "") or None
        barrier = _last(behind, Operation.BARRIER, barrier)
        partial = behind.filter(pc.and_(pc.is_in(behind["op"], PARTIAL), pc.invert(behind["after_complete"])))
        arrived = pc.and_(pc.equal(partial["phase"], ARRIVES), pc.is_valid(partial["link_id"]))
        incomplete += partial.num_rows
        moved += partial.filter(arrived).num_rows
    return Contents(counts.total(), dict(counts), truncated_at, barrier, incomplete, moved)


def _last(records: pa.RecordBatch, op: Operation, known: str) -> str:
    """The largest order key of this operation, or the one known before."""
    found = pc.max(records.filter(pc.equal(records["op"], op.value))["order_key"]).as_py()
    return max(known, found or "")


def _pieces(log: ChangeLog, windows: Sequence[WindowSlice]) -> Iterator[pa.RecordBatch]:
    for window in windows:
        for file in window.part.files:
            with opened(log.store, file.path) as parquet:
                if parquet.metadata.num_rows != file.rows:
                    raise damaged(log, f"window {window.window}", file, f"{parquet.metadata.num_rows} rows")
                yield from parquet.iter_batches(PIECE_ROWS, columns=COLUMNS)
