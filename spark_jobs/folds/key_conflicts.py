"""Which row has a key at the end of a transaction in which two rows had it temporarily.

When a statement swaps two keys, a departure from a key may follow the arrival of another row there: the last entry of
the key is a departure although a row stays. If the last entry is anything else, it is correct, so only such keys are
examined. Rows are distinguished by complete images, whose equal copies are interchangeable, else by the row ids of the
source.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.table.merge_plan import AMBIGUOUS_KEY

DELETE = Operation.DELETE.value


def resolve_key_conflicts(entries: DataFrame) -> DataFrame:
    """Entries (change records with their key as ``k``), of which the last one per key is the outcome of its
    transaction.

    Omits departures after the arrival of the row that stays, and all entries of rows that only passed through. A
    departure with neither image nor row id is kept. Raises TWO_HOLDERS where two rows stay, or where an omitted
    departure carries columns that no other record has."""
    doubtful = _doubtful(entries).localCheckpoint()
    outcomes = _outcomes(entries.join(doubtful, ["tx_id", "k"]))
    joined = entries.join(outcomes, ["tx_id", "k"], "left")
    omitted = F.coalesce(F.col("passed") | (F.col("order_key") > F.col("arrived_at")), F.lit(False))
    carries_columns = F.col("carries").isNotNull() & F.coalesce(F.col("phase") == DEPARTS, F.lit(False))
    kept = F.when(omitted & carries_columns, F.raise_error(F.lit(AMBIGUOUS_KEY)).cast("boolean")).otherwise(~omitted)
    return joined.where(kept).drop(*(name for name in outcomes.columns if name not in ("tx_id", "k")))


def _doubtful(entries: DataFrame) -> DataFrame:
    """Keys that a row arrived at in a transaction and whose last entry there is a departure, where rows can be
    distinguished.

    ``by_id``: only by row ids. ``carries``: some row of the transaction takes unknown columns from another key."""
    whole = F.when(F.col("op") == DELETE, F.col("before_complete")).otherwise(
        F.col("after_complete") & (~_in_place() | F.col("before_complete"))
    )
    carried = entries.where((F.col("phase") == ARRIVES) & ~F.col("after_complete")).select("tx_id").distinct()
    return (
        entries.groupBy("tx_id", "k")
        .agg(
            F.max_by("op", "order_key").alias("last_op"),
            F.bool_or(F.col("op") != DELETE).alias("arrived"),
            (~F.bool_and(whole)).alias("by_id"),
            F.bool_and(F.col("row_id").isNotNull()).alias("ids"),
        )
        .where((F.col("last_op") == DELETE) & F.col("arrived") & (~F.col("by_id") | F.col("ids")))
        .select("tx_id", "k", "by_id")
        .join(carried.withColumn("carries", F.lit(True)), "tx_id", "left")
    )


def _outcomes(entries: DataFrame) -> DataFrame:
    """Per doubtful key: the arrival of the row that stays (``arrived_at``, NULL where none stays), and whether all rows
    only came and went (``passed``)."""
    at = F.struct("order_key", "n")
    rows = (
        _moves(entries)
        .groupBy("tx_id", "k", "by_id", "carries", "row")
        .agg(
            F.sum("n").alias("net"),
            F.min_by("n", at).alias("first"),
            F.max_by("n", at).alias("last"),
            F.max(F.when(F.col("n") > 0, F.col("order_key"))).alias("arrival"),
        )
    )
    stays = F.when(F.col("by_id"), F.col("last") > 0).otherwise(F.col("net") > 0)
    leaves = F.when(F.col("by_id"), (F.col("first") < 0) & (F.col("last") < 0)).otherwise(F.col("net") < 0)
    arrived_at = F.when(F.count_if(stays) > 1, F.raise_error(F.lit(AMBIGUOUS_KEY)).cast("string")).otherwise(
        F.max(F.when(stays, F.col("arrival")))
    )
    return rows.groupBy("tx_id", "k", "carries").agg(
        arrived_at.alias("arrived_at"), (F.count_if(stays | leaves) == 0).alias("passed")
    )


def _moves(entries: DataFrame) -> DataFrame:
    """One row for each row that arrives at a key (``n`` 1) or leaves it (-1); a change in place is both."""
    leaving, arriving = _side("before", -1), _side("after", 1)
    sides = (
        F.when(F.col("op") == DELETE, F.array(leaving))
        .when(_in_place(), F.array(leaving, arriving))
        .otherwise(F.array(arriving))
    )
    exploded = entries.select("tx_id", "k", "by_id", "carries", "order_key", F.explode(sides).alias("side"))
    return exploded.select("tx_id", "k", "by_id", "carries", "order_key", "side.*")


def _in_place() -> Column:
    return (F.col("op") != DELETE) & F.col("key").eqNullSafe(F.col("key_before"))


def _side(image: str, n: int) -> Column:
    row = F.when(F.col("by_id"), F.col("row_id")).otherwise(F.col(image))
    return F.struct(row.alias("row"), F.lit(n).alias("n"))
