"""The change log of a table without key, as arithmetic on equal rows: plus what came, minus what went.

There is no row to guard by order: a batch must be applied exactly once, which token and cursor see to.
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

ROW, NET, HELD, STAY, EACH = "_cdc_row", "_cdc_net", "_cdc_held", "_cdc_stay", "_cdc_each"
"""Columns beside the source's own: they begin with what no source column may begin with."""


@dataclass(frozen=True)
class KeylessFold:
    """``keep_deleted``: deletes do nothing. ``truncated``: the target counts as empty. ``target``: the table as it was
    when the batch was begun."""

    images: ImageColumns
    keep_deleted: bool
    truncated: bool
    target: Callable[[], DataFrame]


def fold_keyless(records: DataFrame, fold: KeylessFold) -> DataFrame:
    """Staged rows: one that takes all equal rows away, others that bring back as many as shall stay."""
    net = _net(records, fold).localCheckpoint()
    names = [quoted(name) for name in fold.images.schema.names]
    came = net.where(F.col(NET) > 0).select(*names, _each(NET))
    staged = came.withColumn(OP, F.lit(COPY)).drop(EACH)
    went = net.where(F.col(NET) < 0)
    if went.isEmpty():
        return staged
    counted = _counted(went, fold)
    gone = counted.select(*names, F.lit(GONE).alias(OP))
    stay = counted.where(F.col(STAY) > 0).select(*names, _each(STAY))
    return staged.unionByName(gone).unionByName(stay.withColumn(OP, F.lit(COPY)).drop(EACH))


def _each(times: str) -> Column:
    """The row as often as the column says."""
    return F.explode(F.sequence(F.lit(1), times)).alias(EACH)


def _net(records: DataFrame, fold: KeylessFold) -> DataFrame:
    """One row per different row image with how many more there are now; images that cancel out are left out."""
    records = records.dropDuplicates(["order_key"])
    came = records.where(F.col("op").isin(INSERT, READ, UPDATE))
    went = records.where(F.col("op").isin(*((UPDATE,) if fold.keep_deleted else (UPDATE, DELETE))))
    sides = came.select(
        "schema_id", F.col("after").alias("image"), F.col("after_complete").alias("whole"), F.lit(1).alias("n")
    ).unionByName(
        went.select(
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


def _counted(went: DataFrame, fold: KeylessFold) -> DataFrame:
    """``STAY``: how many equal rows the target keeps. Raises where it holds fewer than shall go."""
    held = _held(went, fold)
    counted = went.join(held, ROW, "left")
    stay = F.coalesce(HELD, F.lit(0)).cast("int") + F.col(NET)
    return counted.withColumn(STAY, F.when(stay >= 0, stay).otherwise(F.raise_error(F.lit(NO_ROW)).cast("int")))


def _held(went: DataFrame, fold: KeylessFold) -> DataFrame:
    schema = fold.images.schema
    rows = fold.target()
    if fold.truncated:
        rows = rows.limit(0)
    present = {name.lower() for name in rows.columns}
    held = rows.select(
        *(
            F.col(quoted(column.name)).alias(f"_cdc_t{number}")
            if column.name.lower() in present
            else F.expr(initial_value(column)).alias(f"_cdc_t{number}")
            for number, column in enumerate(schema.columns)
        )
    )
    return (
        held.join(went, reduce(lambda left, right: left & right, _equal(schema)))
        .groupBy(ROW)
        .agg(F.count(F.lit(1)).alias(HELD))
    )


def _equal(schema: TableSchema) -> list[Column]:
    """Floats are compared by text: 0.0 and -0.0 are equal numbers but not equal copies."""
    pairs = ((F.col(f"_cdc_t{n}"), F.col(quoted(column.name)), column) for n, column in enumerate(schema.columns))
    return [
        left.cast("string").eqNullSafe(right.cast("string")) if column.type.kind in FLOATING else left.eqNullSafe(right)
        for left, right, column in pairs
    ]
