"""Moved rows completed from the target rows that they moved away from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.table.merge_plan import DELETED, KNOWN, NO_ROW, OP, ORDER
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type, initial_value
from spark_jobs.batches.row_images import ImageColumns, typed

ROOT, MAY_BE_MISSING = "_cdc_root", "_cdc_root_may_be_missing"
"""Columns beside the source's own: no source column may begin so."""


def with_parent_rows(
    staged: DataFrame, images: ImageColumns, target: Callable[[], DataFrame], more: Sequence[str] = ()
) -> DataFrame:
    """Staged rows with all values known where ``ROOT`` is the key of the target row that has the rest. If that row does
    not exist, the rest is NULL where it may be missing; else the mark NO_ROW is raised. ``more``: further columns of
    the staged rows."""
    schema = images.schema
    others = staged.where(F.col(ROOT).isNull()).drop(ROOT, MAY_BE_MISSING)
    moved = staged.where(F.col(ROOT).isNotNull()).withColumn("_cdc_roots", images.keys(F.col(ROOT)))
    moved = moved.select(
        "*", *(typed(schema.column(name), f"_cdc_roots[{n}]").alias(f"_cdc_r{n}") for n, name in enumerate(schema.key))
    )
    same = reduce(
        lambda left, right: left & right,
        (
            F.col(f"_cdc_r{n}").eqNullSafe(F.col(f"_cdc_p{schema.names.index(name)}"))
            for n, name in enumerate(schema.key)
        ),
    )
    roots = moved.select(*(f"_cdc_r{n}" for n in range(len(schema.key))))
    parents = _parents(images, target()).join(roots, same, "left_semi")
    joined = moved.join(parents, same, "left")
    completed = joined.select(
        *(
            F.when(F.array_contains(KNOWN, column.name), F.col(quoted(column.name)))
            .when(F.coalesce("_cdc_found", F.lit(False)), F.col(f"_cdc_p{number}"))
            .when(F.col(MAY_BE_MISSING), F.lit(None))
            .otherwise(F.raise_error(F.lit(NO_ROW)).cast(column_type(column.type)))
            .alias(column.name)
            for number, column in enumerate(schema.columns)
        ),
        ORDER,
        OP,
        F.lit(None).cast("array<string>").alias(KNOWN),
        *more,
    )
    return others.unionByName(completed)


def _parents(images: ImageColumns, rows: DataFrame) -> DataFrame:
    """The target's live rows; a column that the target lacks has its initial value."""
    if DELETED in rows.columns:
        rows = rows.where(~F.col(DELETED))
    present = {name.lower() for name in rows.columns}
    return rows.select(
        *(
            F.col(quoted(column.name)).alias(f"_cdc_p{number}")
            if column.name.lower() in present
            else F.expr(initial_value(column)).alias(f"_cdc_p{number}")
            for number, column in enumerate(images.schema.columns)
        ),
        F.lit(True).alias("_cdc_found"),
    )
