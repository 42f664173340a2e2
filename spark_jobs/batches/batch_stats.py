"""What the records of a batch are, before they are folded.

Read here and not by Spark: the first query of an application costs seconds, and a few narrow columns pass quickly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_records import (
    ARRIVES,
    CONTROL_OPERATIONS,
    IMAGE_OPERATIONS,
    ChangeRecord,
    Operation,
)
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.windows.log_reader import WindowSlice, damaged
from spark_jobs.windows.parquet_files import opened

COLUMNS = ["op", "order_key", "after_complete", "phase", "link_id", "refetch"]
PIECE_ROWS = 64 * 1024
PARTIAL = pa.array(sorted(operation.value for operation in IMAGE_OPERATIONS - {Operation.REPLACE}))


@dataclass(frozen=True)
class BatchShape:
    """What a fold must know: whether there are ``deletes``; how many ``incomplete`` images, ``moved`` ones of them."""

    deletes: bool = False
    incomplete: int = 0
    moved: int = 0

    def __add__(self, other: BatchShape) -> BatchShape:
        deletes = self.deletes or other.deletes
        return BatchShape(deletes, self.incomplete + other.incomplete, self.moved + other.moved)


NOTHING = BatchShape()


@dataclass(frozen=True)
class BatchStats:
    """``records`` behind the floor, ``counts`` of them by operation. ``truncated_at``: the order key of the last
    truncate, ``barrier`` that of the last barrier. ``valueless``: so many say that a row changed, but not how."""

    records: int
    counts: dict[str, int]
    truncated_at: str | None
    barrier: str
    shape: BatchShape
    valueless: int

    @property
    def controls(self) -> int:
        """Control events that are about no single row."""
        return sum(self.counts.get(operation.value, 0) for operation in CONTROL_OPERATIONS - {Operation.GAP})


def batch_stats(log: ChangeLog, windows: Sequence[WindowSlice], floor: str) -> BatchStats:
    """One pass over the records. Raises StagingInvalid (STG005) where their number is not what was sealed."""
    counts: Counter[str] = Counter()
    truncated_at: str | None = None
    barrier = ""
    shape = BatchShape()
    valueless = 0
    for piece in _pieces(log, windows):
        behind = piece.filter(pc.greater(piece["order_key"], floor))
        counts.update({one["values"]: one["counts"] for one in pc.value_counts(behind["op"]).to_pylist()})
        truncated_at = _last(behind, Operation.TRUNCATE, truncated_at or "") or None
        barrier = _last(behind, Operation.BARRIER, barrier)
        shape += _shape(behind)
        valueless += len(behind.filter(pc.greater(pc.list_value_length(behind["refetch"]), 0)))
    valueless += counts[Operation.GAP]
    return BatchStats(counts.total(), dict(counts), truncated_at, barrier, shape, valueless)


def parked_shape(log: ChangeLog, carry: CarryOver) -> BatchShape:
    """Of what is parked in a carry-over."""
    shape = BatchShape()
    for file in carry.files if carry.parked else ():
        with opened(log.store, file.path) as parquet:
            for piece in parquet.iter_batches(PIECE_ROWS, columns=["kind", *COLUMNS]):
                shape += _shape(piece.filter(pc.equal(piece["kind"], Carried.PARKED.value)))
    return shape


def shape_of(records: Iterable[ChangeRecord]) -> BatchShape:
    shape = BatchShape()
    for one in records:
        partial = one.op in IMAGE_OPERATIONS - {Operation.REPLACE} and not one.after_complete
        moved = partial and one.phase == ARRIVES and one.link_id is not None
        shape += BatchShape(one.op == Operation.DELETE, int(partial), int(moved))
    return shape


def _shape(records: pa.RecordBatch) -> BatchShape:
    deletes = bool(pc.any(pc.equal(records["op"], Operation.DELETE.value)).as_py())
    partial = records.filter(pc.and_(pc.is_in(records["op"], PARTIAL), pc.invert(records["after_complete"])))
    arrived = pc.and_(pc.equal(partial["phase"], ARRIVES), pc.is_valid(partial["link_id"]))
    return BatchShape(deletes, partial.num_rows, partial.filter(arrived).num_rows)


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
