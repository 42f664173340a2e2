"""Folds the change log of a table without a key, by counting equal rows: plus the arrivals, minus the departures.

Rows have no order guard: a batch must be applied exactly once, which fencing token and cursor ensure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, NO_ROW, OP
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import FLOATING, initial_value
from spark_jobs.batches.row_images import ImageColumns, typed_columns

INSERT, READ, UPDATE, DELETE = (
    op.value for op in (Operation.INSERT, Operation.READ, Operation.UPDATE, Operation.DELETE)
)

ROW, NET, IN_TARGET, REMAINING, EACH = "_cdc_row", "_cdc_net", "_cdc_held", "_cdc_stay", "_cdc_each"
"""Columns besides the source's own: they start with a prefix that source columns must not have."""


@dataclass(frozen=True)
class KeylessFold:
    """``keep_deleted``: deletes are ignored. ``truncated``: the target counts as empty. ``target``: the table that the
    batch is based on."""

    images: ImageColumns
    keep_deleted: bool
    truncated: bool
    target: Callable[[], DataFrame]


def fold_keyless(records: DataFrame, fold: KeylessFold) -> DataFrame:
    """Staged rows: one that deletes all equal rows, and others that insert as many as remain."""
    net = _net(records, fold).localCheckpoint()
    names = [quoted(name) for name in fold.images.schema.names]
    increased = net.where(F.col(NET) > 0).select(*names, _each(NET))
    staged = increased.withColumn(OP, F.lit(COPY)).drop(EACH)
    decreased = net.where(F.col(NET) < 0)
    if decreased.isEmpty():
        return staged
    counts = _with_remaining(decreased, fold)
    deletes = counts.select(*names, F.lit(GONE).alias(OP))
    remaining = counts.where(F.col(REMAINING) > 0).select(*names, _each(REMAINING))
    return staged.unionByName(deletes).unionByName(remaining.withColumn(OP, F.lit(COPY)).drop(EACH))


def _each(times: str) -> Column:
    """Repeats the row as often as the column ``times`` specifies."""
    return F.explode(F.sequence(F.lit(1), times)).alias(EACH)


def _net(records: DataFrame, fold: KeylessFold) -> DataFrame:
    """One row per distinct row image with the net change of its count; images with no net change are omitted."""
    records = records.dropDuplicates(["order_key"])
    arrivals = records.where(F.col("op").isin(INSERT, READ, UPDATE))
    departures = records.where(F.col("op").isin(*((UPDATE,) if fold.keep_deleted else (UPDATE, DELETE))))
    sides = arrivals.select(
        "schema_id", F.col("after").alias("image"), F.col("after_complete").alias("whole"), F.lit(1).alias("n")
    ).unionByName(
        departures.select(
            "schema_id", F.col("before").alias("image"), F.col("before_complete").alias("whole"), F.lit(-1).alias("n")
        )
    )
    image = F.when(F.col("whole"), F.col("image")).otherwise(F.raise_error(F.lit(NO_ROW)))
    return (
        sides.select(fold.images.texts(image).alias("v"), "n")
        .groupBy("v")
        .agg(F.sum("n").cast("int").alias(NET))
        .where(F.col(NET) != 0)
        .select(F.monotonically_increasing_id().alias(ROW), NET, *typed_columns(fold.images.schema, None, "v"))
    )


def _with_remaining(decreased: DataFrame, fold: KeylessFold) -> DataFrame:
    """``REMAINING``: how many equal rows stay in the target. Raises NO_ROW where the target has fewer than are
    deleted."""
    in_target = _count_in_target(decreased, fold)
    counts = decreased.join(in_target, ROW, "left")
    remaining = F.coalesce(IN_TARGET, F.lit(0)).cast("int") + F.col(NET)
    checked = F.when(remaining >= 0, remaining).otherwise(F.raise_error(F.lit(NO_ROW)).cast("int"))
    return counts.withColumn(REMAINING, checked)


def _count_in_target(decreased: DataFrame, fold: KeylessFold) -> DataFrame:
    schema = fold.images.schema
    rows = fold.target()
    if fold.truncated:
        rows = rows.limit(0)
    target_columns = {name.lower() for name in rows.columns}
    target_rows = rows.select(
        *(
            F.col(quoted(column.name)).alias(f"_cdc_t{number}")
            if column.name.lower() in target_columns
            else F.expr(initial_value(column)).alias(f"_cdc_t{number}")
            for number, column in enumerate(schema.columns)
        )
    )
    return (
        target_rows.join(decreased, reduce(lambda left, right: left & right, _equal(schema)))
        .groupBy(ROW)
        .agg(F.count(F.lit(1)).alias(IN_TARGET))
    )


def _equal(schema: TableSchema) -> list[Column]:
    """Floats are compared by their text: 0.0 and -0.0 are equal numbers but different copies."""
    pairs = ((F.col(f"_cdc_t{n}"), F.col(quoted(column.name)), column) for n, column in enumerate(schema.columns))
    return [
        left.cast("string").eqNullSafe(right.cast("string")) if column.type.kind in FLOATING else left.eqNullSafe(right)
        for left, right, column in pairs
    ]
