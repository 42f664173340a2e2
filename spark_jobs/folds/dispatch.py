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
from spark_jobs.folds.keyed import KeyedFold, fold_keyed
from spark_jobs.folds.keyless import KeylessFold, fold_keyless
from spark_jobs.folds.unordered import UnorderedFold, fold_unordered

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
    """``entries``: the row changes to fold, of this ``shape``. ``carried``: the carry-over of the commit that the batch
    is based on. ``admitted``: entries that waited in it. ``target``: the table at that commit. ``now``: ISO time."""

    task: TableTask
    entries: DataFrame
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

    def result(self) -> FoldResult:
        """Raises IntegrityBroken where the table's regime does not support the records."""
        if not self.images.schema.key:
            return FoldResult(self._keyless())
        if self.images.schema.regime is Regime.UNORDERED:
            return self._unordered()
        return FoldResult(self._keyed())

    def _keyless(self) -> DataFrame:
        ignore = self.task.rule.on_delete is OnDelete.IGNORE
        truncated = self.truncated_at is not None
        return fold_keyless(self.entries, KeylessFold(self.images, ignore, truncated, self.target))

    def _keyed(self) -> DataFrame:
        deletes = self.shape.deletes
        fold = KeyedFold(
            self.images,
            doubly_held=deletes and self.images.schema.regime is Regime.DOUBLE,
            partial=self.shape.incomplete > 0,
            moved=self.shape.moved > 0,
            keep_deleted=deletes and self.task.rule.on_delete is OnDelete.SOFT,
            ignore_deletes=deletes and self.task.rule.on_delete is OnDelete.IGNORE,
            truncated=self.truncated_at is not None,
            own_row=bool(self.plan.touched),
            target=self.target,
        )
        return fold_keyed(self.entries, fold)

    def _unordered(self) -> FoldResult:
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
            self.entries.where(F.col("op") != DELETE) if ignore else self.entries,
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
