"""The fold of a frame of change records, by the kind of the table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.core.spec.history import History
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import BatchShape
from spark_jobs.folds.earlier_rows import converted_frame
from spark_jobs.folds.frames import fold_in_tasks, fold_typed_in_tasks
from spark_jobs.folds.keyless import KeylessFold, fold_keyless
from spark_jobs.folds.typed_rows import typed_rows
from spark_jobs.folds.unordered import UnorderedFold, fold_unordered
from spark_jobs.histories.changes import staged_changes
from spark_jobs.histories.versions import staged_versions

DELETE = Operation.DELETE.value


@dataclass(frozen=True)
class FoldResult:
    """``rows`` as in ``core.table.merge_plan``. ``tombstones``: the new tombstones of the carry-over; None where it has
    none. ``late``: records older than the barrier whose row is not in the target."""

    rows: DataFrame
    tombstones: DataFrame | None = None
    late: tuple[RecordKey, ...] = ()


def fold_frame(
    batch: BatchInput,
    entries: DataFrame,
    shape: BatchShape,
    admitted: DataFrame | None,
    typed: bool,
    waiting: DataFrame | None = None,
) -> FoldResult:
    """``shape``: of the entries, which are the row changes to apply. ``admitted``: entries that waited in the
    carry-over. ``waiting``: the new carry-over, where some records may wait. ``typed``: the tasks may convert the
    values, which fails with ``frames.UNUSUAL`` where only Spark can. Raises IntegrityBroken where the table's regime
    does not support the records."""
    if batch.history is not History.NONE:
        return FoldResult(_history(batch, entries, shape, waiting))
    if not batch.plan.schema.key:
        return FoldResult(_keyless(batch, entries))
    if batch.is_unordered:
        return _unordered(batch, entries, shape, admitted)
    return FoldResult(_keyed(batch, entries, shape, typed))


def _history(batch: BatchInput, entries: DataFrame, shape: BatchShape, waiting: DataFrame | None) -> DataFrame:
    if batch.history is History.LOG:
        return staged_changes(batch, entries)
    return staged_versions(batch, entries, shape, waiting)


def _keyless(batch: BatchInput, entries: DataFrame) -> DataFrame:
    ignore = batch.task.rule.ignores_deletes
    truncated = batch.truncated_at is not None
    return fold_keyless(entries, KeylessFold(batch.images, ignore, truncated, batch.target))


def _keyed(batch: BatchInput, entries: DataFrame, shape: BatchShape, typed: bool) -> DataFrame:
    moved = shape.moved > 0 and not batch.plan.touched
    if typed and not moved:
        known = batch.may_be_partial(shape)
        return fold_typed_in_tasks(entries, batch.fold(shape), batch.rows, batch.plan.schema, known)
    folded = fold_in_tasks(entries, batch.fold(shape), batch.rows, moved)
    return typed_rows(folded, batch.images, batch.may_be_partial(shape), batch.target if moved else None)


def _unordered(batch: BatchInput, entries: DataFrame, shape: BatchShape, admitted: DataFrame | None) -> FoldResult:
    batch.require_unordered(shape)
    repair = bool(batch.plan.touched)
    ignore = batch.task.rule.ignores_deletes
    fold = UnorderedFold(
        batch.images,
        retired_before="" if repair else batch.control.retired_below,
        retired=batch.retired_below,
        now=batch.now,
        admitted=admitted,
        target=batch.target,
    )
    folded = fold_unordered(
        entries.where(F.col("op") != DELETE) if ignore else entries,
        converted_frame(
            batch.carried().where(F.lit(not repair) & (F.col("kind") == Carried.TOMBSTONE)), batch.conversions
        ),
        fold,
    )
    return FoldResult(folded.rows) if repair else FoldResult(folded.rows, folded.carry, folded.late)
