"""The change log of a source that delivers out of order: per key the newest news, whenever it comes.

What is newest depends neither on the order of delivery, nor on repetitions, nor on where batches are cut. A row that
is gone leaves a tombstone in the carry-over, so that older news cannot bring it back. A barrier says that nothing older
will come: tombstones behind it retire. Should something come all the same, and the target not hold its row, nobody
knows whether the row was deleted meanwhile: it is late, and that is for an operator to decide.
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
from spark_jobs.folds.keyed import own_key
from spark_jobs.quarantine.carry_over import BESIDE
from spark_jobs.writers.absent_rows import entries_without_row

DELETE = Operation.DELETE.value
LATE = "late: older than the barrier, and the target does not hold its row"


@dataclass(frozen=True)
class UnorderedFold:
    """``was_retired``: nothing at or below this order key was expected any more when the records came. ``retired``: so
    from now on. ``now``: ISO time of new tombstones. ``admitted``: what is never late (``k``, ``order_key``).
    ``target``: the table as it was when the batch was begun."""

    images: ImageColumns
    was_retired: str
    retired: str
    now: str
    admitted: DataFrame | None
    target: Callable[[], DataFrame]


@dataclass(frozen=True)
class Folded:
    """``rows`` as ``core.merge`` says; ``carry``: tombstones, as ``carry_files`` wants them."""

    rows: DataFrame
    carry: DataFrame
    late: tuple[RecordKey, ...]


def fold_unordered(records: DataFrame, carried: DataFrame, fold: UnorderedFold) -> Folded:
    """``records`` without control events, all images complete. ``carried``: tombstones."""
    nothing = F.lit(None).cast("string")
    fresh = records.withColumns({"kind": nothing, "since": F.lit(fold.now), "reason": nothing, "until": nothing})
    last = _newest(carried.unionByName(fresh)).localCheckpoint()
    late = _late(last, fold).localCheckpoint()
    staged = last.where("kind IS NULL").join(late.select("k"), "k", "left_anti")
    entries = tuple(RecordKey(*row) for row in late.select("k", "order_key").collect()) if fold.was_retired else ()
    return Folded(_rows(staged, fold), _carry(last, fold), entries)


def _newest(entries: DataFrame) -> DataFrame:
    # Of equals, what is carried is what has been dealt with.
    rank = F.struct("order_key", F.col("kind").isNotNull())
    last = F.max_by(F.struct(*FIELDS, *BESIDE), rank).alias("last")
    newest = entries.withColumn("k", own_key()).groupBy("k").agg(last, *last_signatures())
    return newest.select(without_duplicates(F.col("k")).alias("k"), "last.*")


def _late(last: DataFrame, fold: UnorderedFold) -> DataFrame:
    """Rows that come from behind the barrier and are not in the target."""
    late = last.where(F.col("kind").isNull() & (F.col("op") != DELETE) & (F.col("order_key") <= fold.was_retired))
    if fold.admitted is not None:
        late = late.join(fold.admitted, ["k", "order_key"], "left_anti").select(last.columns)
    if not fold.was_retired or late.isEmpty():
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
    gone = last.where(_tombstone() & (F.col("order_key") > fold.retired)).withColumn("kind", F.lit(Carried.TOMBSTONE))
    return gone.select(*FIELDS, *BESIDE)


def _tombstone() -> SparkColumn:
    return (F.col("op") == DELETE) & F.coalesce(F.col("kind") == Carried.TOMBSTONE, F.lit(True))
