"""Rows that moved to another key in a change without all columns.

Such an arrival is linked to the departure from its old key, whose life may itself have begun with an arrival, and so
on: a chain that begins in a life whose row is in the batch, or in the target. All lives of a chain are one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.table.merge_plan import DELETED, GONE, KNOWN, NO_ROW, OP, ORDER
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type, initial_value
from spark_jobs.batches.row_images import ImageColumns, typed

ROOT, ROOT_TYPE = "_cdc_root", "struct<k: string, put: boolean>"
"""Columns besides the source's own start with a prefix that source columns must not have."""


def departed_keys(entries: DataFrame) -> DataFrame:
    """The keys that incomplete arrivals came from."""
    links = entries.where((F.col("phase") == ARRIVES) & ~F.col("after_complete")).select("link_id")
    departures = entries.where((F.col("phase") == DEPARTS) & (F.col("op") == Operation.DELETE.value))
    return departures.join(links, "link_id", "left_semi").select("k")


def with_roots(lives: DataFrame, names: Sequence[str]) -> DataFrame:
    """Every life with the newest values that its chain had by then.

    ``ROOT`` is the key whose target row completes the life, and whether that row was upserted and so may be missing;
    NULL where the row of the same key completes it, or none does. ``root_born``: the chain began in this batch."""
    lives = lives.withColumn("id", F.concat_ws("|", "life", "k")).localCheckpoint()
    chains = _chains(lives)
    members = lives.join(chains, "id", "left").withColumn("chain", F.coalesce("chain", "id"))
    so_far = Window.partitionBy("chain").orderBy("last.order_key").rowsBetween(Window.unboundedPreceding, 0)
    members = members.withColumn("begun", F.first(F.struct("k", "born", "put")).over(so_far))
    moved = F.col("id") != F.col("chain")
    return members.select(
        *("k", "life", "first", "last", "put", "has_change", "arrived", "born"),
        *(F.max(f"w{number}").over(so_far).alias(f"w{number}") for number in range(len(names))),
        F.when(moved & ~F.col("begun.born"), F.struct("begun.k", "begun.put")).alias(ROOT),
        F.col("begun.born").alias("root_born"),
    )


def _chains(lives: DataFrame) -> DataFrame:
    """For every arrived life, the first life of its chain, found by doubling steps: a chain of n needs log2(n)
    rounds."""
    departed = lives.where(F.col("last.phase") == DEPARTS).select(
        F.col("last.link_id").alias("link"), F.col("id").alias("chain")
    )
    arrived = lives.where("arrived").select(F.col("first.link_id").alias("link"), "id")
    steps = arrived.join(departed, "link").select("id", "chain").localCheckpoint()
    while True:
        onward = steps.select(F.col("id").alias("chain"), F.col("chain").alias("further"))
        longer = steps.join(onward, "chain", "left").localCheckpoint()
        if longer.where("further IS NOT NULL").isEmpty():
            return steps
        steps = longer.select("id", F.coalesce("further", "chain").alias("chain"))


def with_parent_rows(staged: DataFrame, images: ImageColumns, target: Callable[[], DataFrame]) -> DataFrame:
    """Moved rows, completed from the target row that they moved away from. Where that row does not exist, unknown
    columns are NULL if it was upserted; otherwise the query fails."""
    schema = images.schema
    moved = staged.where(F.col(ROOT).isNotNull() & (F.col(OP) != GONE) & F.col(KNOWN).isNotNull())
    unmoved = staged.where(F.col(ROOT).isNull() | (F.col(OP) == GONE) | F.col(KNOWN).isNull()).drop(ROOT)
    rows = target()
    if DELETED in rows.columns:
        rows = rows.where(~F.col(DELETED))
    target_columns = {name.lower() for name in rows.columns}
    parent = rows.select(
        *(
            F.col(quoted(column.name)).alias(f"_cdc_p{number}")
            if column.name.lower() in target_columns
            else F.expr(initial_value(column)).alias(f"_cdc_p{number}")
            for number, column in enumerate(schema.columns)
        ),
        F.lit(True).alias("_cdc_found"),
    )
    roots = images.keys(F.col(f"{ROOT}.k"))
    moved = moved.withColumn("_cdc_roots", roots)
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
    root_keys = moved.select(*(f"_cdc_r{n}" for n in range(len(schema.key))))
    parents = parent.join(root_keys, same, "left_semi")
    joined = moved.join(parents, same, "left")
    found = F.coalesce("_cdc_found", F.lit(False))
    completed = joined.select(
        *(
            F.when(F.array_contains(KNOWN, column.name), F.col(quoted(column.name)))
            .when(found, F.col(f"_cdc_p{number}"))
            .when(F.col(f"{ROOT}.put"), F.lit(None))
            .otherwise(F.raise_error(F.lit(NO_ROW)).cast(column_type(column.type)))
            .alias(column.name)
            for number, column in enumerate(schema.columns)
        ),
        ORDER,
        OP,
        F.lit(None).cast("array<string>").alias(KNOWN),
    )
    return unmoved.unionByName(completed)
