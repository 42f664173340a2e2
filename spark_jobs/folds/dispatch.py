"""Chooses the fold for the records of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Regime
from spark_jobs.batches.batch_plan import BatchPlan
from spark_jobs.batches.batch_stats import BatchShape, BatchStats
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.fold import Fold
from spark_jobs.folds.frames import fold_in_tasks, fold_on_driver
from spark_jobs.folds.keyless import KeylessFold, fold_keyless
from spark_jobs.folds.lives import Rules
from spark_jobs.folds.typed_rows import typed_rows
from spark_jobs.folds.unordered import UnorderedFold, fold_unordered
from spark_jobs.runtime.sessions import MAX_INTERPRETED_ROWS

DELETE = Operation.DELETE.value


@dataclass(frozen=True)
class FoldResult:
    """``rows`` as in ``core.table.merge_plan``. ``tombstones``: the new tombstones of the carry-over; None where it has
    none. ``late``: records older than the barrier whose row is not in the target."""

    rows: DataFrame
    tombstones: DataFrame | None = None
    late: tuple[RecordKey, ...] = ()


@dataclass(frozen=True)
class BatchFold:
    """``shape``: of the entries, which are the row changes to apply. ``carried``: the carry-over of the commit that the
    batch is based on. ``admitted``: entries that waited in it. ``target``: the table at that commit. ``now``: ISO time.
    """

    task: TableTask
    images: ImageColumns
    stats: BatchStats
    shape: BatchShape
    truncated_at: str | None
    plan: BatchPlan
    control: ControlRecord
    carried: Callable[[], DataFrame]
    admitted: DataFrame | None
    now: str
    target: Callable[[], DataFrame]

    def result(self, entries: DataFrame) -> FoldResult:
        """Raises IntegrityBroken where the table's regime does not support the records."""
        if not self.images.schema.key:
            return FoldResult(self._keyless(entries))
        if self.images.schema.regime is Regime.UNORDERED:
            return self._unordered(entries)
        return FoldResult(self._keyed(entries))

    def _keyless(self, entries: DataFrame) -> DataFrame:
        ignore = self.task.rule.on_delete is OnDelete.IGNORE
        truncated = self.truncated_at is not None
        return fold_keyless(entries, KeylessFold(self.images, ignore, truncated, self.target))

    @property
    def is_partial(self) -> bool:
        """Some values of the rows may not be known."""
        soft = self.shape.deletes and self.task.rule.on_delete is OnDelete.SOFT
        return bool(self.images.schema.key) and (self.shape.incomplete > 0 or soft)

    @property
    def fold(self) -> Fold:
        """Of a table with a key."""
        schema, deletes = self.images.schema, self.shape.deletes
        rules = Rules(
            schema.names,
            schema.key,
            self.images.initials(),
            keep_deleted=deletes and self.task.rule.on_delete is OnDelete.SOFT,
            ignore_deletes=deletes and self.task.rule.on_delete is OnDelete.IGNORE,
            truncated=self.truncated_at is not None,
            own_row=bool(self.plan.touched),
        )
        return Fold(rules, doubly_held=deletes and schema.regime is Regime.DOUBLE)

    def typed(self, folded: DataFrame) -> DataFrame:
        """Folded rows as rows to merge."""
        return typed_rows(folded, self.images, self.is_partial, self.target if self._moved else None)

    @property
    def _moved(self) -> bool:
        return self.shape.moved > 0 and not self.plan.touched

    def _keyed(self, entries: DataFrame) -> DataFrame:
        rows = self.plan.rows + self.control.carry.waiting
        if rows <= MAX_INTERPRETED_ROWS:
            return self.typed(fold_on_driver(entries, self.fold))
        return self.typed(fold_in_tasks(entries, self.fold, rows, self._moved))

    def _unordered(self, entries: DataFrame) -> FoldResult:
        if self.stats.truncated_at or self.shape.incomplete:
            raise IntegrityBroken(self._without_order())
        repair = bool(self.plan.touched)
        ignore = self.task.rule.on_delete is OnDelete.IGNORE
        fold = UnorderedFold(
            self.images,
            retired_before="" if repair else self.control.retired_below,
            retired=max(self.control.retired_below, self.stats.barrier),
            now=self.now,
            admitted=self.admitted,
            target=self.target,
        )
        folded = fold_unordered(
            entries.where(F.col("op") != DELETE) if ignore else entries,
            self.carried().where(F.lit(not repair) & (F.col("kind") == Carried.TOMBSTONE)),
            fold,
        )
        return FoldResult(folded.rows) if repair else FoldResult(folded.rows, folded.carry, folded.late)

    def _without_order(self) -> Problem:
        table = self.task.table
        return Problem(
            "TGT037",
            "a source without ordered delivery sent a change that requires an order",
            f"{table}, up to window {self.plan.window}",
            "a truncate" if self.stats.truncated_at else "a row without all its columns",
            "rows with all columns, and deletes",
            f"airflow cdc resync {self.control.replicator} --table {table}",
            "nothing of the batch was applied; the change log keeps it",
        )
