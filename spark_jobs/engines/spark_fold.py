"""The fold by Spark's tasks: change records and rows to merge as frames. Records that must wait go to the
carry-over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.engines.spark_folds import FoldResult, fold_frame
from spark_jobs.folds.record_columns import with_touched_keys, without_carried_keys
from spark_jobs.folds.unordered import LATE
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import BadRecord, read_bad_records, write_bad_records, write_listing
from spark_jobs.quarantine.carry_over import write_carry
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.unrepresentable import unrepresentable_records, with_value_checks
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS, disable_codegen
from spark_jobs.windows.driver_reads import carried_frame
from spark_jobs.windows.log_reader import read_records, row_records
from spark_jobs.windows.parquet_files import count_rows


@dataclass(frozen=True)
class SparkFold:
    input: BatchInput

    def build(self) -> BuiltBatch | None:
        """As ``Engine.fold``."""
        unreadable = self.input.unreadable
        self.input.require_unchanged_carry()
        if self.input.rows <= MAX_INTERPRETED_ROWS:
            disable_codegen(self.input.spark)
        try:
            return self._build(unreadable)
        except CdcError:
            raise
        except Exception:  # Spark raises a failed cast as one of many classes, so the records are checked
            unfit = self._unrepresentable()
            if not unfit:
                raise
        return self._build([*unreadable, *unfit])

    def _build(self, bad: Sequence[BadRecord]) -> BuiltBatch | None:
        carry, plan, log = self.input.control.carry, self.input.plan, self.input.job.log
        parts = PartitionedBatch(self.input.records)
        if bad or (self.input.may_wait and not plan.touched):
            dirty = () if plan.touched else self.input.dirty
            partitioned = self._partitioner.partition(self.input.records, bad, dirty)
            if partitioned is None:
                return None
            parts = partitioned
        folded, rows = self._fold(parts)
        late = read_bad_records(log, plan.windows, dict.fromkeys(folded.late, LATE))
        self._partitioner.require_allowed(late)
        if folded.tombstones is not None or parts.waiting is not None:
            carry = self._write_carry(folded, parts, late)
        batch = self.input.batch(rows, KNOWN in folded.rows.columns, carry, parts.discarded)
        return BuiltBatch(batch, parts.fetch_error.problems[0] if parts.fetch_error else None)

    def _fold(self, parts: PartitionedBatch) -> tuple[FoldResult, int]:
        """The rows to merge, and how many of them were written."""
        entries = parts.entries
        if self.input.plan.touched:
            entries = self._repaired(entries)
        with self.input.integrity_errors():
            folded = fold_frame(self.input, entries, self.input.stats.shape + parts.returning, parts.admitted)
            return folded, self._write(folded.rows)

    def _write(self, rows: DataFrame) -> int:
        """Writes rows to merge; returns their number."""
        store, folder = self.input.job.log.store, f"{self.input.folder}/{ROWS}"
        checked = with_value_checks(rows, self.input.plan.schema, self.input.job.tables)
        checked.write.mode("overwrite").parquet(store.url(folder))
        failpoint("stage.after_rows")
        return count_rows(store, folder)

    def _repaired(self, entries: DataFrame) -> DataFrame:
        """The records of the keys that a repair applies again."""
        batch, log = self.input, self.input.job.log
        if batch.control.carry.files:
            entries = without_carried_keys(entries, batch.carried())
        if batch.stats.valueless:
            entries = refetch.without_dirty(entries, refetch.dirty_keys(log, batch.plan.windows, batch.after))
        if batch.truncated_at is not None:
            return entries
        touching = row_records(read_records(batch.spark, log, batch.plan.touched), batch.control.floor)
        return with_touched_keys(entries, touching)

    def _unrepresentable(self) -> list[BadRecord]:
        """Records of these windows with values that the target cannot represent."""
        unfit = unrepresentable_records(self.input.records, self.input.images, self.input.job.tables)
        return read_bad_records(self.input.job.log, self.input.plan.windows, unfit)

    def _write_carry(self, folded: FoldResult, parts: PartitionedBatch, late: Sequence[BadRecord]) -> CarryOver:
        batch, log = self.input, self.input.job.log
        table, attempt = batch.task.table, batch.job.step.attempt
        frames = [frame for frame in (folded.tombstones, parts.waiting) if frame is not None]
        if late:
            frames.append(carried_frame(batch.spark, [replace(entry, since=batch.now).as_carried for entry in late]))
        waiting = frames[0]
        for frame in frames[1:]:
            waiting = waiting.unionByName(frame)
        carry = write_carry(log, table, attempt, waiting)
        carry = write_listing(log, table, attempt, carry, (*parts.bad, *late))
        if carry.quarantined:
            ids = {record.id for record in log.quarantined_records(carry)}
            new = [entry for entry in (*parts.bad, *late) if entry.id in ids and not entry.since]
            write_bad_records(log, table, new, batch.now)
        return carry

    @cached_property
    def _partitioner(self) -> RecordPartitioner:
        batch = self.input
        return RecordPartitioner(
            batch.job,
            batch.work,
            batch.plan,
            batch.images,
            batch.control.carry,
            batch.after,
            batch.stats.shape,
            batch.now,
            batch.target if batch.searches_orphans else None,
        )
