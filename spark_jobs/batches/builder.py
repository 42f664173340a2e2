"""Builds a batch: the records of a plan, folded to rows for the merge, and the carry-over that its commit names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from airflow_cdc_provider.core.decisions.operator_decisions import decisions_by_record
from airflow_cdc_provider.core.decisions.steps import Batch, TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.quarantine import build_accounting
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.core.table.schema import Regime
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.sparksql.names import quoted
from spark_jobs.batches.batch_plan import BatchPlan
from spark_jobs.batches.batch_stats import BatchShape, BatchStats, batch_stats
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.folds.arrow_rows import arrow_rows
from spark_jobs.folds.dispatch import BatchFold, FoldResult
from spark_jobs.folds.fold import is_partial
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.record_columns import with_touched_keys, without_carried_keys
from spark_jobs.folds.unordered import LATE
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import (
    BadRecord,
    read_bad_records,
    unreadable_records,
    write_bad_records,
    write_listing,
)
from spark_jobs.quarantine.carry_over import read_carry, write_carry
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.refetch import DirtyKey
from spark_jobs.quarantine.unrepresentable import unrepresentable_records, with_value_checks
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS, disable_codegen
from spark_jobs.windows.driver_reads import carried_frame
from spark_jobs.windows.local_records import local_records
from spark_jobs.windows.log_reader import read_records, require_unchanged, row_records
from spark_jobs.windows.parquet_files import count_rows, open_parquet
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.writer import open_writer

BATCH = "batch.json"


def has_waiting_work(log: ChangeLog, table: str, control: ControlRecord, repair: Sequence[int]) -> bool:
    """Whether there may be something to stage although no window is left to apply: rows to fetch, or a decision about a
    record in quarantine."""
    if repair or not control.carry.waiting:
        return False
    if control.carry.dirty:
        return True
    decided = decisions_by_record(log.decisions(), table).keys()
    return any(record.id in decided for record in log.quarantined_records(control.carry))


@dataclass(frozen=True)
class BuiltBatch:
    """``problem``: why some rows are left to the next run."""

    batch: Batch
    problem: Problem | None = None


@dataclass(frozen=True)
class BatchBuilder:
    """``control`` and ``version``: the state of the target that the batch is based on."""

    job: Job
    work: TableWork
    control: ControlRecord
    plan: BatchPlan
    version: int | None

    def build(self) -> BuiltBatch | None:
        """A table with records gets a batch even if no row changes: its commit moves the cursor. None where there are
        no records and no decision helped. Raises Stopped where a bad record must not be quarantined, SourceUnavailable
        where only rows to be fetched are left and the source returns none."""
        unreadable = unreadable_records(self.job.log, self.plan.windows, self._after)
        if self.control.carry.files:
            require_unchanged(self.job.log, "the carry-over", self.control.carry.files)
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
        if not bad and (written := self._fold_locally()) is not None:
            return BuiltBatch(self._batch(*written, self.control.carry))
        carry, log = self.control.carry, self.job.log
        if self.plan.rows <= MAX_INTERPRETED_ROWS:
            disable_codegen(self.work.spark)
        parts = PartitionedBatch(self._records)
        if bad or (self._needs_partitioning and not self.plan.touched):
            partitioned = self._partitioner.partition(self._records, bad, () if self.plan.touched else self._dirty)
            if partitioned is None:
                return None
            parts = partitioned
        folded, rows = self._fold(parts)
        late = read_bad_records(log, self.plan.windows, dict.fromkeys(folded.late, LATE))
        self._partitioner.require_allowed(late)
        if folded.tombstones is not None or parts.waiting is not None:
            carry = self._write_carry(folded, parts, late)
        batch = self._batch(rows, KNOWN in folded.rows.columns, carry, parts.discarded)
        return BuiltBatch(batch, parts.fetch_error.problems[0] if parts.fetch_error else None)

    def _batch(self, rows: int, partial: bool, carry: CarryOver, discarded: int = 0) -> Batch:
        stats = self._stats
        accounting = build_accounting(
            read=self.plan.rows,
            waited=0 if self.plan.touched else self.control.carry.waiting,
            applied=rows if self.plan.schema.key else stats.records - stats.controls,
            ignored=stats.controls,
            discarded=discarded,
            quarantined=carry.quarantined,
            held=carry.parked + carry.dirty,
        )
        return Batch(
            table=self._task.table,
            folder=self._folder,
            fence=self.control.fence,
            lo_window=self.control.window,
            window=self.plan.window,
            schema=self.plan.schema,
            rows=rows,
            counts=stats.counts,
            partial=partial,
            truncated=self._truncated_at is not None,
            repair=bool(self.plan.touched),
            added=self.plan.added,
            accounting=accounting,
            carry=carry,
            retired_below=max(self.control.retired_below, stats.barrier),
        )

    def _fold_locally(self) -> tuple[int, bool] | None:
        """How many rows to merge were written, and whether some of their values are not known; None where Spark must
        fold the batch."""
        schema = self.plan.schema
        if not schema.key or schema.regime is Regime.UNORDERED or self.plan.touched or self._needs_partitioning:
            return None
        batch_fold = self._batch_fold(self._stats.shape)
        with (
            local_records(self.job.log, self.plan.windows, self._after, ENTRIES.names) as entries,
            self._integrity_errors(),
        ):
            if entries is None:
                return None
            folded = batch_fold.fold.rows(entries)
            partial = batch_fold.is_partial and is_partial(folded)
            rows = None if self._checks_values else arrow_rows(folded, schema, partial)
            if rows is None or folded["root"].null_count < len(folded):
                disable_codegen(self.work.spark)
                frame = batch_fold.typed(self.work.spark.createDataFrame(folded))
                return self._write(frame), batch_fold.is_partial
            with self.job.log.store.open_output(f"{self._folder}/{ROWS}/part-00000.parquet") as content:
                pq.write_table(rows, content, store_schema=False)
            failpoint("stage.after_rows")
            return len(rows), partial

    @property
    def _checks_values(self) -> bool:
        """The target cannot hold some values of the columns' types."""
        key, columns, tables = self.plan.schema.key, self.plan.schema.columns, self.job.tables
        return any(tables.unsupported_condition(column, column.name in key, quoted(column.name)) for column in columns)

    @property
    def _needs_partitioning(self) -> bool:
        """Some records may have to wait."""
        carry, stats = self.control.carry, self._stats
        return bool(carry.waiting or carry.fetched or stats.valueless) or self._searches_orphans

    @property
    def _searches_orphans(self) -> bool:
        """A failed merge reports that a change has no row in the target; to find which ones, all keys of the target
        must be read."""
        failed = self._task.state is not TableState.REPLICATING
        return failed and self._stats.shape.incomplete > 0 and not self.plan.touched and self.job.fetches_rows

    @property
    def _dirty(self) -> list[DirtyKey]:
        log = self.job.log
        new = refetch.dirty_keys(log, self.plan.windows, self._after) if self._stats.valueless else []
        return [*new, *refetch.carried_dirty_keys(log, self.control.carry)]

    def _fold(self, parts: PartitionedBatch) -> tuple[FoldResult, int]:
        """The rows to merge, and how many of them were written."""
        entries = parts.entries
        if self.plan.touched:
            entries = self._repaired(entries)
        with self._integrity_errors():
            folded = self._batch_fold(self._stats.shape + parts.returning, parts.admitted).result(entries)
            return folded, self._write(folded.rows)

    def _write(self, rows: DataFrame) -> int:
        """Writes rows to merge; returns their number."""
        url = self.job.log.store.url(f"{self._folder}/{ROWS}")
        with_value_checks(rows, self.plan.schema, self.job.tables).write.mode("overwrite").parquet(url)
        failpoint("stage.after_rows")
        return count_rows(self.job.log.store, f"{self._folder}/{ROWS}")

    def _batch_fold(self, shape: BatchShape, admitted: DataFrame | None = None) -> BatchFold:
        return BatchFold(
            self._task,
            self._images,
            self._stats,
            shape,
            self._truncated_at,
            self.plan,
            self.control,
            self._carried,
            admitted,
            self._now,
            self._target,
        )

    def _integrity_errors(self) -> contextlib.AbstractContextManager[None]:
        return as_integrity_error(self.job.step.definition.name, self._task.table, self.plan.window)

    def _repaired(self, entries: DataFrame) -> DataFrame:
        if self.control.carry.files:
            entries = without_carried_keys(entries, self._carried())
        if self._stats.valueless:
            entries = refetch.without_dirty(entries, refetch.dirty_keys(self.job.log, self.plan.windows, self._after))
        if self._truncated_at is not None:
            return entries
        log, spark = self.job.log, self.work.spark
        return with_touched_keys(entries, row_records(read_records(spark, log, self.plan.touched), self.control.floor))

    def _unrepresentable(self) -> list[BadRecord]:
        """Records of these windows with values that the target cannot represent."""
        unfit = unrepresentable_records(self._records, self._images, self.job.tables)
        return read_bad_records(self.job.log, self.plan.windows, unfit)

    def _write_carry(self, folded: FoldResult, parts: PartitionedBatch, late: Sequence[BadRecord]) -> CarryOver:
        log, spark, table, attempt = self.job.log, self.work.spark, self._task.table, self.job.step.attempt
        frames = [frame for frame in (folded.tombstones, parts.waiting) if frame is not None]
        if late:
            frames.append(carried_frame(spark, [replace(entry, since=self._now).as_carried for entry in late]))
        waiting = frames[0]
        for frame in frames[1:]:
            waiting = waiting.unionByName(frame)
        carry = write_carry(log, table, attempt, waiting)
        carry = write_listing(log, table, attempt, carry, (*parts.bad, *late))
        if carry.quarantined:
            ids = {record.id for record in log.quarantined_records(carry)}
            new = [entry for entry in (*parts.bad, *late) if entry.id in ids and not entry.since]
            write_bad_records(log, table, new, self._now)
        return carry

    @property
    def _task(self) -> TableTask:
        return self.work.task

    @property
    def _folder(self) -> str:
        return batch_folder(self._task.table, self.job.step.attempt)

    @cached_property
    def _now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    @cached_property
    def _stats(self) -> BatchStats:
        return batch_stats(self.job.log, self.plan.windows, self.control.floor)

    @property
    def _truncated_at(self) -> str | None:
        return None if self._task.rule.on_delete is OnDelete.IGNORE else self._stats.truncated_at

    @property
    def _after(self) -> str:
        return self._truncated_at or self.control.floor

    @property
    def _records(self) -> DataFrame:
        return row_records(read_records(self.work.spark, self.job.log, self.plan.windows), self._after)

    @property
    def _carried(self) -> Callable[[], DataFrame]:
        return partial(read_carry, self.work.spark, self.job.log, self.control.carry)

    def _target(self) -> DataFrame:
        writer = open_writer(self.job.step.definition.target.type, self.work.session, self.job.tables)
        return writer.read(self._task, self.version)

    @cached_property
    def _images(self) -> ImageColumns:
        """The columns of all records that may be folded: the schemas of the windows, and those of waiting records."""
        log = self.job.log
        schema_ids = {schema_id for window in self.plan.windows for schema_id in window.part.schema_ids}
        for file in self.control.carry.files if self.control.carry.waiting else ():
            with open_parquet(log.store, file.path) as parquet:
                for piece in parquet.iter_batches(columns=["schema_id"]):
                    schema_ids.update(pc.unique(piece["schema_id"]).to_pylist())
        return ImageColumns(self.plan.schema, {schema_id: log.schema(schema_id) for schema_id in sorted(schema_ids)})

    @cached_property
    def _partitioner(self) -> RecordPartitioner:
        return RecordPartitioner(
            self.job,
            self.work,
            self.plan,
            self._images,
            self.control.carry,
            self._after,
            self._stats.shape,
            self._now,
            self._target if self._searches_orphans else None,
        )
