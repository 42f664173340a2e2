"""Folds the changes of a source that delivers out of order: per key, the change with the highest order key wins.

The result depends neither on the order of delivery, nor on duplicates, nor on batch boundaries. A deleted row leaves a
tombstone in the carry-over, so that an older change cannot restore it. A barrier promises that nothing older will
arrive: tombstones below it are removed. If an older change arrives nevertheless, and its row is not in the target, the
row may have been deleted meanwhile: the record is late, and an operator must decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import FIELDS, Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.core.table.merge_plan import GONE, LIVE, OP, ORDER
from spark_jobs.batches.row_images import ImageColumns, typed_columns
from spark_jobs.folds.duplicates import last_signatures, without_duplicates
from spark_jobs.folds.record_columns import own_key
from spark_jobs.quarantine.carry_over import CARRY_COLUMNS
from spark_jobs.writers.absent_rows import entries_without_row

DELETE = Operation.DELETE.value
LATE = "late: older than the barrier, and its row is not in the target"


@dataclass(frozen=True)
class UnorderedFold:
    """``retired_before``: changes at or below this order key were retired when the records arrived. ``retired``:
    the same after this batch. ``now``: ISO time of new tombstones. ``admitted``: entries that are never late (``k``,
    ``order_key``). ``target``: the table that the batch is based on."""

    images: ImageColumns
    retired_before: str
    retired: str
    now: str
    admitted: DataFrame | None
    target: Callable[[], DataFrame]


@dataclass(frozen=True)
class UnorderedRows:
    """``rows`` as in ``core.table.merge_plan``; ``carry``: tombstones, as ``write_carry`` expects them."""

    rows: DataFrame
    carry: DataFrame
    late: tuple[RecordKey, ...]


def fold_unordered(records: DataFrame, carried: DataFrame, fold: UnorderedFold) -> UnorderedRows:
    """``records`` without control events, all images complete. ``carried``: tombstones."""
    null = F.lit(None).cast("string")
    new = records.withColumns({"kind": null, "since": F.lit(fold.now), "reason": null, "until": null})
    last = _newest(carried.unionByName(new)).localCheckpoint()
    late = _late(last, fold).localCheckpoint()
    staged = last.where("kind IS NULL").join(late.select("k"), "k", "left_anti")
    entries = tuple(RecordKey(*row) for row in late.select("k", "order_key").collect()) if fold.retired_before else ()
    return UnorderedRows(_rows(staged, fold), _carry(last, fold), entries)


def _newest(entries: DataFrame) -> DataFrame:
    # Of two equal records, the carried one has already been applied.
    rank = F.struct("order_key", F.col("kind").isNotNull())
    last = F.max_by(F.struct(*FIELDS, *CARRY_COLUMNS), rank).alias("last")
    newest = entries.withColumn("k", own_key()).groupBy("k").agg(last, *last_signatures())
    return newest.select(without_duplicates(F.col("k")).alias("k"), "last.*")


def _late(last: DataFrame, fold: UnorderedFold) -> DataFrame:
    """Changes at or below the retired order key whose row is not in the target."""
    late = last.where(F.col("kind").isNull() & (F.col("op") != DELETE) & (F.col("order_key") <= fold.retired_before))
    if fold.admitted is not None:
        late = late.join(fold.admitted, ["k", "order_key"], "left_anti").select(last.columns)
    if not fold.retired_before or late.isEmpty():
        return late.limit(0)
    return entries_without_row(late, fold.images, fold.target())


def _rows(staged: DataFrame, fold: UnorderedFold) -> DataFrame:
    values = staged.select(
        F.col("order_key").alias(ORDER),
        F.when(F.col("op") == DELETE, GONE).otherwise(LIVE).alias(OP),
        fold.images.keys(F.col("k")).alias("keys"),
        fold.images.texts(F.when(F.col("op") != DELETE, F.col("after"))).alias("v"),
    )
    return values.select(*typed_columns(fold.images.schema, "keys", "v"), ORDER, OP)


def _carry(last: DataFrame, fold: UnorderedFold) -> DataFrame:
    tombstones = last.where(_tombstone() & (F.col("order_key") > fold.retired))
    return tombstones.withColumn("kind", F.lit(Carried.TOMBSTONE)).select(*FIELDS, *CARRY_COLUMNS)


def _tombstone() -> SparkColumn:
    return (F.col("op") == DELETE) & F.coalesce(F.col("kind") == Carried.TOMBSTONE, F.lit(True))
