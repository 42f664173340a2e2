"""Folds the change log of a keyed table to at most one row per key.

The last entry of a key decides whether the row exists; its columns are folded over the key's current *life*, which
begins with an insert or after a delete. If all images are complete, the last entry is the row: one narrow aggregate.
Keys with an incomplete image (unchanged large columns that the source did not send) need more work: per life and column
the newest known value. A row that moved to another key takes its unknown columns along (``key_moves``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ARRIVES, IMAGE_OPERATIONS, Operation
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, LIVE, NO_ROW, OP, ORDER, PUT
from spark_jobs.batches.row_images import ImageColumns, typed_columns
from spark_jobs.folds.duplicates import is_first_delivery, last_signatures, without_duplicates
from spark_jobs.folds.key_conflicts import resolve_key_conflicts
from spark_jobs.folds.key_moves import ROOT, ROOT_TYPE, departed_keys, with_parent_rows, with_roots

BEGINS = (Operation.INSERT.value, Operation.READ.value, Operation.REPLACE.value)
DELETE = Operation.DELETE.value
IMAGES = tuple(sorted(operation.value for operation in IMAGE_OPERATIONS))


@dataclass(frozen=True)
class KeyedFold:
    """``doubly_held``: two rows may have had one key within a transaction, and some departed. ``partial``: some images
    are incomplete. ``moved``: some of them arrive from another key. ``keep_deleted``: a deleted row keeps its last
    values (soft delete). ``ignore_deletes``: it stays unchanged. ``truncated``: no row older than the records exists.
    ``own_row``: moved rows take unknown columns from their own target row instead of the departed one (repair).
    ``target``: the table that the batch is based on; read only where rows moved."""

    images: ImageColumns
    doubly_held: bool
    partial: bool
    moved: bool
    keep_deleted: bool
    ignore_deletes: bool
    truncated: bool
    own_row: bool
    target: Callable[[], DataFrame]


def fold_keyed(records: DataFrame, fold: KeyedFold) -> DataFrame:
    """Staged rows (see ``core.table.merge_plan``) of change records without control events."""
    if fold.keep_deleted and fold.own_row:
        records = _with_last_images(records)
    entries = records.withColumn("k", own_key())
    if fold.doubly_held:
        entries = resolve_key_conflicts(entries)
    if fold.ignore_deletes:  # departures stay: the arriving row may take columns from there
        entries = entries.where((F.col("op") != DELETE) | F.col("phase").isNotNull())
    if not fold.partial and not fold.keep_deleted:
        return _last_entries(_without_ignored_deletes(entries, fold), fold, with_known=False)
    slow = _slow_keys(entries, fold).localCheckpoint()
    fast = _last_entries(_without_ignored_deletes(entries.join(slow, "k", "left_anti"), fold), fold, with_known=True)
    return fast.unionByName(_lives(entries.join(slow, "k", "left_semi"), fold))


def own_key() -> SparkColumn:
    """The key of a change record: of a delete, the key before it."""
    return F.when(F.col("op") == DELETE, F.col("key_before")).otherwise(F.col("key"))


def _without_ignored_deletes(entries: DataFrame, fold: KeyedFold) -> DataFrame:
    return entries.where(F.col("op") != DELETE) if fold.ignore_deletes else entries


def with_touched_keys(records: DataFrame, touching: DataFrame) -> DataFrame:
    """The records whose key occurs, before or after, in any record of ``touching``."""
    keys = touching.select(F.explode(F.array("key_before", "key")).alias("k")).where("k IS NOT NULL").distinct()
    return records.withColumn("k", own_key()).join(keys, "k", "left_semi").drop("k")


def without_carried_keys(records: DataFrame, carried: DataFrame) -> DataFrame:
    """The records of keys that are not in the carry-over: a repair leaves those keys alone."""
    waiting = carried.select(own_key().alias("k")).distinct()
    return records.withColumn("k", own_key()).join(waiting, "k", "left_anti").drop("k")


def _with_last_images(records: DataFrame) -> DataFrame:
    """Deletes with their before image: a repair may have to restore the row, marked as deleted."""
    has_image = (F.col("op") == DELETE) & F.col("before_complete")
    return records.withColumn("after", F.when(has_image, F.col("before")).otherwise(F.col("after"))).withColumn(
        "after_complete", has_image | F.col("after_complete")
    )


def is_incomplete() -> SparkColumn:
    """A live image without all columns. ``replace`` counts as complete: the columns it lacks are NULL."""
    return F.col("op").isin(*IMAGES) & ~F.col("after_complete") & (F.col("op") != Operation.REPLACE.value)


def _last_entries(entries: DataFrame, fold: KeyedFold, with_known: bool) -> DataFrame:
    last = F.struct("op", "order_key", "after", "schema_id")
    rows = (
        entries.groupBy("k")
        .agg(F.max_by(last, "order_key").alias("last"), *last_signatures())
        .select("k", "last.*", without_duplicates(F.col("last.order_key")).alias(ORDER))
        .select(
            ORDER,
            F.when(F.col("op") == DELETE, GONE).otherwise(LIVE).alias(OP),
            fold.images.keys(F.col("k")).alias("keys"),
            fold.images.texts(F.col("after")).alias("v"),
            F.when(F.col("after").isNull(), F.array().cast("array<string>")).alias(KNOWN),
        )
    )
    known = [KNOWN] if with_known else []
    return rows.select(*typed_columns(fold.images.schema, "keys", "v"), ORDER, OP, *known)


def _slow_keys(entries: DataFrame, fold: KeyedFold) -> DataFrame:
    per_key = entries.groupBy("k").agg(
        F.bool_or(is_incomplete()).alias("partial"),
        F.count(F.lit(1)).alias("entries"),
        F.max_by("op", "order_key").alias("last_op"),
    )
    kept = (F.col("last_op") == DELETE) & (F.col("entries") > 1) if fold.keep_deleted else F.lit(False)
    slow = per_key.where(F.col("partial") | kept).select("k")
    return slow.union(departed_keys(entries)).distinct() if fold.moved and not fold.own_row else slow


def _lives(entries: DataFrame, fold: KeyedFold) -> DataFrame:
    lives = _folded_lives(_numbered_lives(entries), fold)
    if fold.moved and not fold.own_row:
        lives = with_roots(lives, fold.images.schema.names)
    else:
        lives = lives.withColumn(ROOT, F.lit(None).cast(ROOT_TYPE)).withColumn("root_born", F.col("born"))
    last = Window.partitionBy("k").orderBy(F.col("life").desc())
    rows = lives.withColumn("rank", F.row_number().over(last)).where("rank = 1")
    return _staged(rows, fold)


def _numbered_lives(entries: DataFrame) -> DataFrame:
    """Each entry once, with the number of its life. A delete belongs to the life that it ends."""
    by_order = Window.partitionBy("k").orderBy("order_key")
    entries = entries.withColumn("first_delivery", is_first_delivery(by_order)).where("first_delivery")
    after_delete = F.lag("op").over(by_order) == DELETE
    begins = F.col("op").isin(*BEGINS) | F.coalesce(after_delete, F.lit(False))
    return entries.withColumn("begins", begins).withColumn("life", F.sum(F.col("begins").cast("int")).over(by_order))


def _folded_lives(entries: DataFrame, fold: KeyedFold) -> DataFrame:
    """One row per life: its first and last entry, and per column the newest known value."""
    images, names = fold.images, fold.images.schema.names
    parsed = entries.select(
        "*",
        images.texts(F.col("after")).alias("v"),
        F.coalesce(images.known(F.col("after")), F.array().cast("array<string>")).alias("names"),
        F.coalesce(F.col("after_complete") | (F.col("op") == Operation.REPLACE.value), F.lit(False)).alias("whole"),
    )
    newest = [
        F.max(
            F.when(
                F.col("after").isNotNull() & (F.col("whole") | F.array_contains("names", name)),
                F.struct("order_key", F.col("v").getField(name).alias("text")),
            )
        ).alias(f"w{number}")
        for number, name in enumerate(names)
    ]
    first = F.struct("op", "begins", "whole", "phase", "link_id", "schema_id")
    return (
        parsed.groupBy("k", "life")
        .agg(
            F.min_by(first, "order_key").alias("first"),
            F.max_by(F.struct("op", "order_key", "phase", "link_id"), "order_key").alias("last"),
            F.bool_or(F.col("op") == Operation.UPSERT.value).alias("put"),
            F.bool_or(F.col("op") != DELETE).alias("has_change"),
            *newest,
        )
        .withColumn("arrived", _arrived())
        .withColumn("born", _born(fold.truncated))
    )


def _arrived() -> SparkColumn:
    """The life came from another key without all its columns."""
    arrived = (F.col("first.phase") == ARRIVES) & F.col("first.link_id").isNotNull() & ~F.col("first.whole")
    return F.coalesce(arrived, F.lit(False))


def _born(truncated: bool) -> SparkColumn:
    """No earlier row precedes the life: unknown columns are NULL. After a truncate an upsert begins one."""
    begins = F.col("first.op").isin(*BEGINS, Operation.UPSERT.value) & (F.col("first.begins") | F.lit(truncated))
    return begins & ~_arrived() | F.col("first.whole")


def _staged(rows: DataFrame, fold: KeyedFold) -> DataFrame:
    schema = fold.images.schema
    known = F.array_compact(
        F.array(*(F.when(F.col(f"w{n}").isNotNull(), F.lit(name)) for n, name in enumerate(schema.names)))
    )
    deleted = F.col("last.op") == DELETE
    if fold.ignore_deletes:
        deleted = deleted & ~F.col("has_change")
    whole = F.size(known) == len(schema.names)
    deleted_known = (
        F.when(whole, F.lit(None)).otherwise(known) if fold.keep_deleted else F.array().cast("array<string>")
    )
    live_known = F.when(F.col("root_born") | whole, F.lit(None)).otherwise(known)
    orphan = _orphan(fold)
    values = rows.select(
        ROOT,
        F.when(deleted, GONE).when(F.col("put"), PUT).otherwise(LIVE).alias(OP),
        F.col("last.order_key").alias(ORDER),
        F.when(deleted, deleted_known)
        .when(orphan & live_known.isNotNull(), F.raise_error(F.lit(NO_ROW)).cast("array<string>"))
        .otherwise(live_known)
        .alias(KNOWN),
        fold.images.keys(F.col("k")).alias("keys"),
        _texts(fold).alias("v"),
    )
    staged = values.select(*typed_columns(schema, "keys", "v"), ORDER, OP, KNOWN, ROOT)
    if fold.moved and not fold.own_row:
        return with_parent_rows(staged, fold.images, fold.target)
    return staged.drop(ROOT)


def _orphan(fold: KeyedFold) -> SparkColumn:
    """An incomplete life without a row to complete it: after a truncate, or an update after a delete. In a repair, a
    row that arrived is completed from its own target row."""
    dead = (F.col("first.begins") | F.lit(fold.truncated)) & ~F.col("born")
    return dead if fold.truncated and not fold.own_row else dead & ~F.col("arrived")


def _texts(fold: KeyedFold) -> SparkColumn:
    """Unknown columns of a new row are NULL, or the initial value of a column added after the row."""
    images = fold.images
    return F.struct(
        *(
            F.when(F.col(f"w{number}").isNotNull(), F.col(f"w{number}.text"))
            .when(F.col("root_born"), images.initial(column, F.col("first.schema_id")))
            .alias(column.name)
            if column.initial is not None
            else F.col(f"w{number}.text").alias(column.name)
            for number, column in enumerate(images.schema.columns)
        )
    )
