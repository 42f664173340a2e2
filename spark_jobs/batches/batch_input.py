"""What a fold works with: the records of a batch, the state of the target, and what is known about both."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.connectors.registry import delivers_late
from airflow_cdc_provider.core.decisions.operator_decisions import decisions_by_record
from airflow_cdc_provider.core.decisions.steps import Batch, TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.carry_over import CarryOver, Truncate
from airflow_cdc_provider.core.log.change_log import batch_folder
from airflow_cdc_provider.core.log.quarantine import build_accounting
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import row_schema, stored_schema
from airflow_cdc_provider.core.table.schema import Regime, TableSchema
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.batch_plan import BatchPlan
from spark_jobs.batches.batch_stats import BatchShape, BatchStats, batch_stats
from spark_jobs.batches.commit_times import commit_times
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.truncates import EPOCH, last_truncate, truncates_in
from spark_jobs.folds.earlier_rows import Conversion, conversions, under_later_names
from spark_jobs.folds.fold import Fold
from spark_jobs.folds.lives import Rules
from spark_jobs.folds.versions import VersionFold
from spark_jobs.histories.current_rows import current_rows
from spark_jobs.histories.version_times import CommitTimes, may_go_back, versions_until
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import BadRecord, unreadable_records
from spark_jobs.quarantine.carry_over import read_carry, renamed_while_waiting
from spark_jobs.quarantine.dropped_columns import NOTHING_DROPPED, DroppedColumns, dropped_columns
from spark_jobs.quarantine.refetch import DirtyKey
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.windows.log_reader import WindowSlice, read_records, require_unchanged, row_records
from spark_jobs.windows.parquet_files import open_parquet
from spark_jobs.writers.former_columns import without_columns
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.writer import open_writer


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
class BatchInput:
    """``control`` and ``version``: the state of the target that the batch is based on."""

    job: Job
    work: TableWork
    control: ControlRecord
    plan: BatchPlan
    version: int | None

    @property
    def rows(self) -> int:
        """About how many records a fold reads."""
        return self.plan.rows + self.control.carry.waiting

    @property
    def task(self) -> TableTask:
        return self.work.task

    @property
    def folder(self) -> str:
        return batch_folder(self.task.table, self.job.step.attempt)

    @cached_property
    def now(self) -> str:
        """ISO time."""
        return utc_now()

    @cached_property
    def stats(self) -> BatchStats:
        return batch_stats(self.job.log, self.plan.windows, self.control.floor)

    @property
    def history(self) -> History:
        return self.task.rule.history

    @cached_property
    def truncated_at(self) -> str | None:
        """In a history, the changes before a truncate count, too."""
        if self.task.rule.ignores_truncates or self.history is not History.NONE:
            return None
        if self.plan.ignored_truncates:
            return last_truncate(self.job.log, self._truncating_windows, self.control.floor)
        return self.stats.truncated_at

    @property
    def late_truncate(self) -> str:
        """The order key of the last truncate, if the target may have rows of later changes; else empty."""
        at = self.truncated_at
        return at if at is not None and at < self.control.applied.newest else ""

    @cached_property
    def truncates(self) -> tuple[Truncate, ...]:
        """The truncates of the batch, for a history."""
        if self.task.rule.ignores_truncates:
            return ()
        return truncates_in(self.job.log, self._truncating_windows, self.control.floor)

    @property
    def all_truncates(self) -> tuple[Truncate, ...]:
        """Those that records have waited through, and those of the batch."""
        passed = self.control.carry.truncates if self.control.carry.waiting else ()
        return (*passed, *self.truncates)

    @property
    def _truncating_windows(self) -> list[WindowSlice]:
        return [window for window in self.plan.windows if window.window not in self.plan.ignored_truncates]

    @property
    def after(self) -> str:
        """Only records above this order key count."""
        return self.truncated_at or self.control.floor

    @cached_property
    def unreadable(self) -> list[BadRecord]:
        """Records that no decoder understood."""
        return unreadable_records(self.job.log, self.plan.windows, self.after)

    @property
    def is_unordered(self) -> bool:
        """The source delivers changes out of order, and the order matters: a log of changes has it in a column."""
        return self.plan.schema.regime is Regime.UNORDERED and self.history is not History.LOG

    @property
    def retired_below(self) -> str:
        """Older changes than this order key are late after this batch."""
        return max(self.control.retired_below, self.stats.barrier)

    @property
    def may_wait(self) -> bool:
        """Some records may have to wait."""
        carry, stats = self.control.carry, self.stats
        return bool(carry.waiting or carry.fetched or stats.valueless) or self.searches_orphans

    @property
    def searches_orphans(self) -> bool:
        """A failed merge reports that a change has no row in the target; to find which ones, all keys of the target
        must be read."""
        failed = self.task.state is not TableState.REPLICATING and self.history is not History.LOG
        return failed and self.stats.shape.incomplete > 0 and not self.plan.touched and self.job.fetches_rows

    @property
    def dirty(self) -> list[DirtyKey]:
        log = self.job.log
        new = refetch.dirty_keys(log, self.plan.windows, self.after) if self.stats.valueless else []
        return [*new, *refetch.carried_dirty_keys(log, self.control.carry)]

    @cached_property
    def images(self) -> ImageColumns:
        """The columns of all records that may be folded: the schemas of the windows, and those of waiting records."""
        later, schemas = self.plan.schema, self._logged_schemas.items()
        return ImageColumns(
            later, {one: under_later_names(schema, later, self._renamed_from(one)) for one, schema in schemas}
        )

    @cached_property
    def _logged_schemas(self) -> dict[str, TableSchema]:
        in_windows = {one for window in self.plan.windows for one in window.part.schema_ids}
        return {one: self.job.log.schema(one) for one in sorted(in_windows | self._waiting_schemas)}

    @cached_property
    def _waiting_schemas(self) -> set[str]:
        schema_ids = set[str]()
        for file in self.control.carry.files if self.control.carry.waiting else ():
            with open_parquet(self.job.log.store, file.path) as parquet:
                for piece in parquet.iter_batches(columns=["schema_id"]):
                    schema_ids.update(pc.unique(piece["schema_id"]).to_pylist())
        return schema_ids

    @cached_property
    def conversions(self) -> dict[str, Conversion]:
        """By the ids of the schemas whose records are older than an alteration of the target."""
        return conversions(self._logged_schemas, self.plan.schema, self._renamed_from)

    def _renamed_from(self, schema_id: str) -> Mapping[str, str]:
        """The columns that operators have decided to be renamed since records had this schema."""
        renamed = self.plan.renamed_from(schema_id)
        return {**self._renamed_since_waiting, **renamed} if schema_id in self._waiting_schemas else renamed

    @cached_property
    def dropped_columns(self) -> DroppedColumns:
        """What waiting records lose with the batch."""
        before = row_schema(self.control.schema or self.plan.schema)
        if before == self.plan.schema:
            return NOTHING_DROPPED
        return dropped_columns(before, self.plan.schema, self._logged_schemas, self._renamed_since_waiting)

    @cached_property
    def _renamed_since_waiting(self) -> dict[str, str]:
        return renamed_while_waiting(self.job.log, self.task.table, self.control.carry)

    def fold(self, shape: BatchShape) -> Fold:
        """Of a table with a key. ``shape``: of the entries."""
        schema, deletes = self.plan.schema, shape.deletes
        rules = Rules(
            schema.names,
            schema.key,
            self.images.initials(),
            keep_deleted=deletes and self.task.rule.on_delete is OnDelete.SOFT,
            ignore_deletes=deletes and self.task.rule.ignores_deletes,
            truncated=self.truncated_at is not None and not self.late_truncate,
            own_row=bool(self.plan.touched),
        )
        return Fold(rules, doubly_held=deletes and schema.regime is Regime.DOUBLE)

    def version_fold(self, shape: BatchShape) -> VersionFold:
        """Of a table whose copy keeps versions. ``shape``: of the entries."""
        fold = self.fold(shape)
        return VersionFold(fold.rules, self.all_truncates, fold.doubly_held)

    @property
    def version_now(self) -> int:
        """``now`` in microseconds since 1970."""
        return (datetime.fromisoformat(self.now) - EPOCH) // timedelta(microseconds=1)

    def may_be_partial(self, shape: BatchShape) -> bool:
        """Whether some values of the folded rows may not be known."""
        soft = shape.deletes and self.task.rule.on_delete is OnDelete.SOFT
        return bool(self.plan.schema.key) and not self.is_unordered and (shape.incomplete > 0 or soft)

    def require_unordered(self, shape: BatchShape) -> None:
        """Raises IntegrityBroken where changes need the order that the source does not keep."""
        if not (self.stats.truncated_at or shape.incomplete):
            return
        raise IntegrityBroken.of(
            "TGT037",
            "a source without ordered delivery sent a change that requires an order",
            f"{self.task.table}, up to window {self.plan.window}",
            "a truncate" if self.stats.truncated_at else "a row without all its columns",
            "rows with all columns, and deletes",
            f"airflow cdc resync {self.control.replicator} --table {in_shell(self.task.table)}",
            "nothing of the batch was applied; the change log keeps it",
        )

    def integrity_errors(self) -> contextlib.AbstractContextManager[None]:
        return as_integrity_error(self.job.step.definition.name, self.task.table, self.plan.window)

    def require_unchanged_carry(self) -> None:
        if self.control.carry.files:
            require_unchanged(self.job.log, "the carry-over", self.control.carry.files)

    def batch(self, rows: int, partial: bool, carry: CarryOver | None = None, discarded: int = 0) -> Batch:
        """``rows``: how many rows to merge were written."""
        carry, stats = self._with_truncates(carry or self.control.carry), self.stats
        accounting = build_accounting(
            read=self.plan.rows,
            waited=0 if self.plan.touched else self.control.carry.waiting,
            applied=rows if self._one_row_per_key else stats.records - stats.controls,
            ignored=stats.controls,
            discarded=discarded,
            quarantined=carry.quarantined,
            held=carry.parked + carry.dirty,
        )
        return Batch(
            table=self.task.table,
            folder=self.folder,
            fence=self.control.fence,
            lo_window=self.control.window,
            window=self.plan.window,
            schema=stored_schema(self.history, self.plan.schema),
            rows=rows,
            counts=stats.counts,
            partial=partial,
            truncated=self.truncated_at is not None,
            truncated_at=self.late_truncate,
            repair=bool(self.plan.touched),
            added=self.plan.added,
            accounting=accounting,
            carry=carry,
            retired_below=self.retired_below,
            ignored=dict(self.plan.ignored),
            versions_until=self._versions_until,
            high=self._high,
            newest=self.stats.newest if delivers_late(self.job.step.definition) else "",
        )

    @property
    def _high(self) -> int | None:
        """A later one if the batch reaches the high watermark of the copy, and the windows from there on were cut."""
        high, window = self.control.high, self.plan.window
        if high is None or window < high or self.job.whole_windows.is_replayed(self.task.source_table, high, window):
            return None
        return window + 1

    def _with_truncates(self, carry: CarryOver) -> CarryOver:
        """What waits has its versions when it is applied, and they end with the truncates of the meantime."""
        if self.history is not History.SCD2:
            return carry
        return replace(carry, truncates=self.all_truncates if carry.waiting else ())

    @cached_property
    def _times(self) -> CommitTimes:
        """Fetched rows, and records that return, are not in the windows."""
        times = commit_times(self.job.log, self.plan.windows)
        return replace(times, some_unknown=True) if self.may_wait else times

    @property
    def _versions_until(self) -> str:
        is_timed = self.history is History.SCD2
        return versions_until(self.control, self._times, self.now) if is_timed else ""

    @property
    def may_go_back(self) -> bool:
        """In time, compared with versions of the target."""
        return may_go_back(self.control, self._times, self.now)

    @property
    def _one_row_per_key(self) -> bool:
        return bool(self.plan.schema.key) and self.history is History.NONE

    # As Spark frames

    @property
    def spark(self) -> SparkSession:
        return self.work.spark

    @property
    def records(self) -> DataFrame:
        return row_records(read_records(self.spark, self.job.log, self.plan.windows), self.after)

    @property
    def carried(self) -> Callable[[], DataFrame]:
        return partial(read_carry, self.spark, self.job.log, self.control.carry)

    def target(self) -> DataFrame:
        """The rows of the table, of a history the current versions, that the batch is based on."""
        return current_rows(self.history, self.stored_rows(), self.plan.schema.key)

    def stored_rows(self) -> DataFrame:
        """All rows of the table, of a history all versions. Without the batch's new columns: the table may have former
        ones of their names, whose values the merge removes."""
        rows = open_writer(self.job, self.work).read(self.task, self.version)
        return without_columns(rows, self.plan.added)
