"""Statistics of the records of a batch, before they are folded.

Read without Spark: the first query of an application takes seconds, while a few narrow columns are read quickly.
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
from spark_jobs.windows.log_reader import WindowSlice, file_damaged
from spark_jobs.windows.parquet_files import open_parquet

COLUMNS = ["op", "order_key", "after_complete", "phase", "link_id", "refetch"]
PIECE_ROWS = 64 * 1024
PARTIAL = pa.array(sorted(operation.value for operation in IMAGE_OPERATIONS - {Operation.REPLACE}))
NO_CHANGES = pa.array(sorted(one.value for one in (*CONTROL_OPERATIONS - {Operation.TRUNCATE}, Operation.UNREADABLE)))


@dataclass(frozen=True)
class BatchShape:
    """What the choice of a fold depends on: whether there are ``deletes``, and how many ``incomplete`` images, of which
    ``moved`` came from another key."""

    deletes: bool = False
    incomplete: int = 0
    moved: int = 0

    def __add__(self, other: BatchShape) -> BatchShape:
        deletes = self.deletes or other.deletes
        return BatchShape(deletes, self.incomplete + other.incomplete, self.moved + other.moved)


EMPTY_SHAPE = BatchShape()


@dataclass(frozen=True)
class BatchStats:
    """``records`` above the floor, ``counts`` of them by operation. ``newest``: the highest order key of a row change
    or truncate. ``truncated_at``: the order key of the last
    truncate; ``barrier``: that of the last barrier. ``valueless``: how many report that a row changed without its
    values."""

    records: int
    counts: dict[str, int]
    truncated_at: str | None
    barrier: str
    shape: BatchShape
    valueless: int
    newest: str = ""

    @property
    def controls(self) -> int:
        """Control events that are not about a single row."""
        return sum(self.counts.get(operation.value, 0) for operation in CONTROL_OPERATIONS - {Operation.GAP})


def batch_stats(log: ChangeLog, windows: Sequence[WindowSlice], floor: str) -> BatchStats:
    """One pass over the records. Raises StagingInvalid (STG005) where their number differs from the manifest."""
    counts: Counter[str] = Counter()
    truncated_at: str | None = None
    barrier, newest = "", ""
    shape = BatchShape()
    valueless = 0
    for piece in _pieces(log, windows):
        above_floor = piece.filter(pc.greater(piece["order_key"], floor))
        counts.update({count["values"]: count["counts"] for count in pc.value_counts(above_floor["op"]).to_pylist()})
        truncated_at = _last(above_floor, Operation.TRUNCATE, truncated_at or "") or None
        barrier = _last(above_floor, Operation.BARRIER, barrier)
        changes = above_floor["order_key"].filter(pc.invert(pc.is_in(above_floor["op"], NO_CHANGES)))
        newest = max(newest, pc.max(changes).as_py() or "")
        shape += _shape(above_floor)
        valueless += len(above_floor.filter(pc.greater(pc.list_value_length(above_floor["refetch"]), 0)))
    valueless += counts[Operation.GAP]
    return BatchStats(counts.total(), dict(counts), truncated_at, barrier, shape, valueless, newest)


def parked_shape(log: ChangeLog, carry: CarryOver) -> BatchShape:
    """The shape of the parked records of a carry-over."""
    shape = BatchShape()
    for file in carry.files if carry.parked else ():
        with open_parquet(log.store, file.path) as parquet:
            for piece in parquet.iter_batches(PIECE_ROWS, columns=["kind", *COLUMNS]):
                shape += _shape(piece.filter(pc.equal(piece["kind"], Carried.PARKED.value)))
    return shape


def shape_of(records: Iterable[ChangeRecord]) -> BatchShape:
    shape = BatchShape()
    for record in records:
        partial = record.op in IMAGE_OPERATIONS - {Operation.REPLACE} and not record.after_complete
        moved = partial and record.phase == ARRIVES and record.link_id is not None
        shape += BatchShape(record.op == Operation.DELETE, int(partial), int(moved))
    return shape


def _shape(records: pa.RecordBatch) -> BatchShape:
    deletes = bool(pc.any(pc.equal(records["op"], Operation.DELETE.value)).as_py())
    partial = records.filter(pc.and_(pc.is_in(records["op"], PARTIAL), pc.invert(records["after_complete"])))
    arrived = pc.and_(pc.equal(partial["phase"], ARRIVES), pc.is_valid(partial["link_id"]))
    return BatchShape(deletes, partial.num_rows, partial.filter(arrived).num_rows)


def _last(records: pa.RecordBatch, op: Operation, known: str) -> str:
    """The largest order key of this operation, or the one from earlier pieces."""
    largest = pc.max(records.filter(pc.equal(records["op"], op.value))["order_key"]).as_py()
    return max(known, largest or "")


def _pieces(log: ChangeLog, windows: Sequence[WindowSlice]) -> Iterator[pa.RecordBatch]:
    for window in windows:
        for file in window.part.files:
            with open_parquet(log.store, file.path) as parquet:
                if parquet.metadata.num_rows != file.rows:
                    raise file_damaged(log, f"window {window.window}", file, f"{parquet.metadata.num_rows} rows")
                yield from parquet.iter_batches(PIECE_ROWS, columns=COLUMNS)
