"""Folded rows (``fold.ROWS``) as rows to merge: their images as typed columns."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.table.merge_plan import KNOWN, OP, ORDER
from spark_jobs.batches.row_images import ImageColumns, typed_columns
from spark_jobs.folds.parent_rows import MAY_BE_MISSING, ROOT, with_parent_rows


def typed_rows(
    folded: DataFrame, images: ImageColumns, partial: bool, target: Callable[[], DataFrame] | None
) -> DataFrame:
    """By Spark. ``partial``: some values may not be known. ``target``: the target's rows, where a row may have moved
    without all its columns."""
    values = folded.select(
        F.col("order_key").alias(ORDER),
        F.col("op").alias(OP),
        F.col("known").alias(KNOWN),
        F.col("root").alias(ROOT),
        F.col("root_may_be_missing").alias(MAY_BE_MISSING),
        images.keys(F.col("key")).alias("keys"),
        images.parsed(F.col("image")).alias("v"),
    )
    known = [KNOWN] if partial else []
    parents = [ROOT, MAY_BE_MISSING] if target else []
    staged = values.select(*typed_columns(images.schema, "keys", "v"), ORDER, OP, *known, *parents)
    return with_parent_rows(staged, images, target) if target else staged
