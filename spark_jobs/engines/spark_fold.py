"""The fold by Spark's tasks: change records and rows to merge as frames. Records that must wait go to the
carry-over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame

from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_records import FIELDS
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.built_batch import BuiltBatch
from spark_jobs.batches.row_files import write_frame
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.engines.fold_frame import FoldResult, fold_frame
from spark_jobs.folds.earlier_rows import converted_frame
from spark_jobs.folds.frames import UNUSUAL
from spark_jobs.folds.record_columns import with_touched_keys, without_carried_keys, without_keys
from spark_jobs.folds.unordered import LATE
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import BadRecord, read_bad_records
from spark_jobs.quarantine.frame_entries import FrameEntries
from spark_jobs.quarantine.new_carry import new_carry
from spark_jobs.quarantine.orphan_updates import orphan_updates
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.refetch import DirtyKey
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
        partitioner = RecordPartitioner(self.input, self._orphans if self.input.searches_orphans else None)
        records = FrameEntries.of_records(self.input.records)
        parts: PartitionedBatch[FrameEntries] | None = PartitionedBatch(records)
        if bad or (self.input.may_wait and not plan.touched):
            parts = partitioner.partition(records, self._parked(records), bad)
        if parts is None:
            return None
        folded, rows = self._fold(parts)
        late = read_bad_records(log, plan.windows, dict.fromkeys(folded.late, LATE))
        partitioner.require_allowed(late)
        if folded.tombstones is not None or parts.waiting is not None:
            carry = self._write_carry(folded, parts, late)
        batch = self.input.batch(rows, KNOWN in folded.rows.columns, carry, parts.discarded)
        return BuiltBatch(batch, parts.fetch_error.problems[0] if parts.fetch_error else None)

    def _parked(self, records: FrameEntries) -> FrameEntries:
        if self.input.plan.touched:
            return records.of(())
        return FrameEntries.of_parked(self.input.carried(), self.input.after)

    def _orphans(self, entries: FrameEntries) -> list[DirtyKey]:
        return orphan_updates(entries.frame, self.input.images, self.input.target)

    def _fold(self, parts: PartitionedBatch[FrameEntries]) -> tuple[FoldResult, int]:
        """The rows to merge, and how many of them were written."""
        entries = converted_frame(parts.entries.frame.select(*FIELDS), self.input.conversions)
        if self.input.plan.touched:
            entries = self._repaired(entries)
        admitted = parts.returning.positions if parts.returning else None
        waiting = parts.waiting.frame if parts.waiting else None
        shape = self.input.stats.shape + parts.shape
        with self.input.integrity_errors():
            try:
                folded = fold_frame(self.input, entries, shape, admitted, typed=True, waiting=waiting)
                return folded, self._write(folded.rows)
            except Exception as error:  # Spark raises an error of a task as one of many classes
                if UNUSUAL not in str(error):
                    raise
            folded = fold_frame(self.input, entries, shape, admitted, typed=False, waiting=waiting)
            return folded, self._write(folded.rows)

    def _write(self, rows: DataFrame) -> int:
        """Writes rows to merge; returns their number."""
        store, folder = self.input.job.log.store, f"{self.input.folder}/{ROWS}"
        checked = with_value_checks(rows, self.input.plan.schema, self.input.job.tables)
        write_frame(checked, store.url(folder))
        failpoint("stage.after_rows")
        return count_rows(store, folder)

    def _repaired(self, entries: DataFrame) -> DataFrame:
        """The records of the keys that a repair applies again."""
        batch, log = self.input, self.input.job.log
        if batch.control.carry.files:
            entries = without_carried_keys(entries, batch.carried())
        if batch.stats.valueless:
            dirty = refetch.dirty_keys(log, batch.plan.windows, batch.after)
            entries = without_keys(entries, (one.key for one in dirty))  # a repair does not fetch rows
        if batch.truncated_at is not None:
            return entries
        touching = row_records(read_records(batch.spark, log, batch.plan.touched), batch.control.floor)
        return with_touched_keys(entries, touching)

    def _unrepresentable(self) -> list[BadRecord]:
        """Records of these windows with values that the target cannot represent."""
        records = converted_frame(self.input.records, self.input.conversions)
        unfit = unrepresentable_records(records, self.input.images, self.input.job.tables)
        return read_bad_records(self.input.job.log, self.input.plan.windows, unfit)

    def _write_carry(
        self, folded: FoldResult, parts: PartitionedBatch[FrameEntries], late: Sequence[BadRecord]
    ) -> CarryOver:
        frames = [folded.tombstones] if folded.tombstones is not None else []
        frames += [parts.waiting.frame] if parts.waiting is not None else []
        if late:
            waits = [replace(entry, since=self.input.now).as_carried for entry in late]
            frames.append(carried_frame(self.input.spark, waits))
        return new_carry(self.input, reduce(DataFrame.unionByName, frames), (*parts.bad, *late))
