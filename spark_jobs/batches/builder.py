"""One batch: the records of a plan, folded into rows to merge, and the carry-over that its commit will name."""

from __future__ import annotations

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
from spark_jobs.batches.batch_stats import BatchStats, batch_stats
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.staged_rows import ROWS
from spark_jobs.folds.dispatch import Folding, FoldResult
from spark_jobs.folds.keyed import of_touched_keys, without_carried
from spark_jobs.folds.local_engine import FastPathFold, fold_locally
from spark_jobs.folds.unordered import LATE
from spark_jobs.quarantine import refetch
from spark_jobs.quarantine.bad_records import Bad, keep, named, unreadable, with_listing
from spark_jobs.quarantine.carry_over import read_carry, write_carry
from spark_jobs.quarantine.partitioning import PartitionedBatch, RecordPartitioner
from spark_jobs.quarantine.refetch import DirtyKeys
from spark_jobs.quarantine.unrepresentable import guarded, unrepresentable_records
from spark_jobs.runtime.job import Job, TableWork
from spark_jobs.runtime.sessions import FEW_ROWS, interpreted
from spark_jobs.windows.driver_reads import frame
from spark_jobs.windows.log_reader import read_records, require_unchanged, row_records
from spark_jobs.windows.parquet_files import opened, row_count
from spark_jobs.writers.merge_errors import as_integrity_error
from spark_jobs.writers.writer import open_writer

BATCH = "batch.json"


def worth_trying(log: ChangeLog, table: str, control: ControlRecord, repair: Sequence[int]) -> bool:
    """There may be something to stage though no window waits: the source has to be asked for rows, or somebody has
    decided about a record in quarantine."""
    if repair or not control.carry.waiting:
        return False
    if control.carry.dirty:
        return True
    return (
        not decisions_by_record(log.decisions(), table)
        .keys()
        .isdisjoint(one.id for one in log.quarantined_records(control.carry))
    )


@dataclass(frozen=True)
class BuiltBatch:
    """``problem``: why some rows are left out until the next run."""

    batch: Batch
    problem: Problem | None = None


@dataclass(frozen=True)
class BatchBuilder:
    """``control`` and ``version``: what the table held when it was looked at."""

    job: Job
    work: TableWork
    control: ControlRecord
    plan: BatchPlan
    version: int | None

    def batch(self) -> BuiltBatch | None:
        """Unchanged or not, a table that met records gets a batch: its commit moves the cursor past them. None where
        there are none and decisions helped nothing. Raises Stopped where a bad record may not be put aside,
        SourceUnavailable where nothing but rows to be fetched wait and none comes."""
        found = unreadable(self.job.log, self.plan.windows, self._after)
        if self.control.carry.files:
            require_unchanged(self.job.log, "the carry-over", self.control.carry.files)
        try:
            return self._try(found)
        except CdcError:
            raise
        except Exception:  # Spark wraps what a value does to a cast in many classes; the records themselves tell
            unfit = self._unfit()
            if not unfit:
                raise
        return self._try([*found, *unfit])

    def _try(self, bad: Sequence[Bad]) -> BuiltBatch | None:
        if not bad and self._is_plain and (written := self._folded_here()) is not None:
            return BuiltBatch(self._batch(written, partial=False, carry=self.control.carry))
        carry, log = self.control.carry, self.job.log
        if self.plan.rows <= FEW_ROWS:
            interpreted(self.work.spark)
        sorted_ = PartitionedBatch(self._records)
        if bad or (self._something_waits and not self.plan.touched):
            found = self._sorting.sort(self._records, bad, () if self.plan.touched else self._dirty)
            if found is None:
                return None
            sorted_ = found
        staged, rows = self._folded(sorted_)
        late = named(log, self.plan.windows, dict.fromkeys(staged.late, LATE))
        self._sorting.require_allowed(late)
        if staged.tombstones is not None or sorted_.waiting is not None:
            carry = self._carried_on(staged, sorted_, late)
        batch = self._batch(rows, KNOWN in staged.rows.columns, carry, sorted_.discarded)
        return BuiltBatch(batch, sorted_.unanswered.problems[0] if sorted_.unanswered else None)

    def _batch(self, rows: int, partial: bool, carry: CarryOver, discarded: int = 0) -> Batch:
        contents = self._contents
        accounting = build_accounting(
            read=self.plan.rows,
            waited=0 if self.plan.touched else self.control.carry.waiting,
            applied=rows if self.plan.schema.key else contents.records - contents.controls,
            ignored=contents.controls,
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
            counts=contents.counts,
            partial=partial,
            truncated=self._truncated_at is not None,
            repair=bool(self.plan.touched),
            added=self.plan.added,
            accounting=accounting,
            carry=carry,
            retired_below=max(self.control.retired_below, contents.barrier),
        )

    @property
    def _is_plain(self) -> bool:
        """The last record of each key is all that the fold needs to know."""
        schema, shape = self.plan.schema, self._contents.shape
        held_twice = shape.deletes and schema.regime is Regime.DOUBLE
        if not schema.key or schema.regime is Regime.UNORDERED or shape.incomplete or held_twice:
            return False
        tables = self.job.tables
        refused = (tables.unsupported_condition(c, c.name in schema.key, quoted(c.name)) for c in schema.columns)
        return not (self.plan.touched or self._something_waits or any(refused))

    def _folded_here(self) -> int | None:
        """How many rows to merge were written; None where that is left to Spark."""
        fold = FastPathFold(self._images, self._after, self._task.rule.on_delete)
        with fold_locally(self.job.log, self.plan.windows, fold) as rows:
            if rows is None:
                return None
            with self.job.log.store.open_output(f"{self._folder}/{ROWS}/part-00000.parquet") as content:
                pq.write_table(rows, content, store_schema=False)
            failpoint("stage.after_rows")
            return len(rows)

    @property
    def _something_waits(self) -> bool:
        """Not every record can be taken as it is."""
        carry, contents = self.control.carry, self._contents
        return bool(carry.waiting or carry.fetched or contents.valueless) or self._looks_for_strays

    @property
    def _looks_for_strays(self) -> bool:
        """A merge says that a change meets no row; which ones do, only all keys of the target can tell."""
        failed = self._task.state is not TableState.REPLICATING
        return failed and self._contents.shape.incomplete > 0 and not self.plan.touched and self.job.fetches_rows

    @property
    def _dirty(self) -> list[DirtyKeys]:
        log = self.job.log
        met = refetch.dirty_keys_of(log, self.plan.windows, self._after) if self._contents.valueless else []
        return [*met, *refetch.carried(log, self.control.carry)]

    def _folded(self, sorted_: PartitionedBatch) -> tuple[FoldResult, int]:
        """The rows to merge, and how many of them were written."""
        entries = sorted_.entries
        if self.plan.touched:
            entries = self._repaired(entries)
        folding = Folding(
            self._task,
            entries,
            self._images,
            self._contents,
            self._contents.shape + sorted_.back,
            self._truncated_at,
            self.plan,
            self.control,
            self._carried,
            sorted_.admitted,
            self._now,
            self._target,
        )
        url = self.job.log.store.url(f"{self._folder}/{ROWS}")
        with as_integrity_error(self.job.step.definition.name, self._task.table, self.plan.window):
            staged = folding.staged()
            guarded(staged.rows, self.plan.schema, self.job.tables).write.mode("overwrite").parquet(url)
        failpoint("stage.after_rows")
        return staged, row_count(self.job.log.store, f"{self._folder}/{ROWS}")

    def _repaired(self, entries: DataFrame) -> DataFrame:
        if self.control.carry.files:
            entries = without_carried(entries, self._carried())
        if self._contents.valueless:
            entries = refetch.without_dirty(
                entries, refetch.dirty_keys_of(self.job.log, self.plan.windows, self._after)
            )
        if self._truncated_at is not None:
            return entries
        log, spark = self.job.log, self.work.spark
        return of_touched_keys(entries, row_records(read_records(spark, log, self.plan.touched), self.control.floor))

    def _unfit(self) -> list[Bad]:
        """Records of these windows that hold what the target cannot."""
        unfit = unrepresentable_records(self._records, self._images, self.job.tables)
        return named(self.job.log, self.plan.windows, unfit)

    def _carried_on(self, staged: FoldResult, sorted_: PartitionedBatch, late: Sequence[Bad]) -> CarryOver:
        log, spark, table, attempt = self.job.log, self.work.spark, self._task.table, self.job.step.attempt
        parts = [part for part in (staged.tombstones, sorted_.waiting) if part is not None]
        parts += [frame(spark, [replace(one, since=self._now).carried for one in late])] if late else []
        waiting = parts[0]
        for part in parts[1:]:
            waiting = waiting.unionByName(part)
        carry = write_carry(log, table, attempt, waiting)
        carry = with_listing(log, table, attempt, carry, (*sorted_.bad, *late))
        if carry.quarantined:
            ids = {one.id for one in log.quarantined_records(carry)}
            keep(log, table, (one for one in (*sorted_.bad, *late) if one.id in ids and not one.since), self._now)
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
    def _contents(self) -> BatchStats:
        return batch_stats(self.job.log, self.plan.windows, self.control.floor)

    @property
    def _truncated_at(self) -> str | None:
        return None if self._task.rule.on_delete is OnDelete.IGNORE else self._contents.truncated_at

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
        """Of everything that may be folded: the schemas of the windows, and of what waits."""
        log, known = self.job.log, {one for window in self.plan.windows for one in window.part.schema_ids}
        for file in self.control.carry.files if self.control.carry.waiting else ():
            with opened(log.store, file.path) as parquet:
                for piece in parquet.iter_batches(columns=["schema_id"]):
                    known.update(pc.unique(piece["schema_id"]).to_pylist())
        return ImageColumns(self.plan.schema, {one: log.schema(one) for one in sorted(known)})

    @cached_property
    def _sorting(self) -> RecordPartitioner:
        return RecordPartitioner(
            self.job,
            self.work,
            self.plan,
            self._images,
            self.control.carry,
            self._after,
            self._contents.shape,
            self._now,
            self._target if self._looks_for_strays else None,
        )
